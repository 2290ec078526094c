
#include "ron_nodes.h"
#include "ron_port.h"

#include <stdlib.h>


#define NODES_WAYS    8
#define NODES_HEIGHT  8                 /* of a tile */
#define NODES_SLOT_N  510

/* How much longer than one of level 0 a tile above is kept unused. */
#define NODES_PATIENCE  16

/* A path, the peaks of a size, a leaf. */
#define NODES_PEAKS   64
#define NODES_NEED    (RON_PROOF_MAX + NODES_PEAKS + 1)

/* The height of what is no node of a tile, but made of the peaks. */
#define NODES_FOLD    0xff

/* Both halves of a tile, as bits. */
#define NODES_WHOLE   3

/* Loading one tile may push out another, but not for ever. */
#define NODES_TRIES   64

/* How long a thread waits for another one that makes an upper tile. */
#define NODES_WAIT_US  100000
#define NODES_WAITS    20


/* What is looked at for each node lies apart from what is copied. */

typedef struct {
    uint64_t    index;
    uint64_t    used;                   /* 0: empty */
    uint16_t    width;
    uint8_t     level;
    uint8_t     made;                   /* halves whose nodes are there */
} nodes_slot_t;

typedef struct {
    ron_hash_t  hash[NODES_SLOT_N];
} nodes_body_t;

/* The two highest nodes of a complete tile of level 0. */

typedef struct {
    uint64_t    tile;                   /* its index + 1, 0: empty */
    ron_hash_t  half[2];
} nodes_top_t;

struct ron_nodes_s {
    ron_digest_t   digest;
    ron_mutex_t   *lock;
    ron_cond_t    *grown;
    bool           growing;
    nodes_slot_t  *slots;
    nodes_body_t  *bodies;              /* of the slot of the same number */
    uint64_t       set_n;
    uint64_t       clock;
    nodes_top_t   *tops;
    uint64_t       top_n;
    uint64_t       fold_size;           /* the last size that was asked for */
    ron_hash_t     fold[NODES_PEAKS];
};


typedef struct {
    uint8_t     height;
    uint64_t    index;
    ron_hash_t  hash;
} nodes_need_t;

/*
 * A path from the root down, the leaf, and the peaks unless what is made of
 * them is known.  Fold k is the root of the peaks from the k-th on: fold 0 is
 * the tree's root, and what a path has to the right of all complete subtrees
 * is one of the others.
 */

typedef struct {
    nodes_need_t  need[NODES_NEED];
    uint32_t      need_n;
    uint32_t      path_n;
    uint32_t      peak_n;
    uint32_t      fold;                 /* that the path has, 0: none */
    uint32_t      fold_at;
} nodes_plan_t;

/* A tile with what is made of it. */

typedef struct {
    ron_tile_t  tile;
    ron_hash_t  above[NODES_SLOT_N - RON_TILE_WIDTH];
    uint8_t     made;
} nodes_made_t;


static void nodes_plan(nodes_plan_t *plan, uint64_t index, uint64_t size);
static void nodes_plan_peaks(nodes_plan_t *plan, uint64_t size);
static void nodes_plan_add(nodes_plan_t *plan, unsigned height,
    uint64_t begin);
static bool nodes_fetch(ron_nodes_t *nodes, nodes_plan_t *plan,
    nodes_need_t **missing);
static bool nodes_there(const nodes_slot_t *slot, unsigned h, uint64_t at);
static void nodes_fold(ron_nodes_t *nodes, nodes_plan_t *plan, uint64_t size,
    ron_hash_t *root);
static uint32_t nodes_at(unsigned height);
static uint64_t nodes_tile(const nodes_need_t *need);
static ron_hash_t *nodes_hashes(ron_nodes_t *nodes, const nodes_slot_t *slot);
static nodes_slot_t *nodes_set(ron_nodes_t *nodes, unsigned level,
    uint64_t index);
static nodes_slot_t *nodes_find(ron_nodes_t *nodes, unsigned level,
    uint64_t index);
static nodes_slot_t *nodes_victim(ron_nodes_t *nodes, unsigned level,
    uint64_t index);
static nodes_top_t *nodes_top(ron_nodes_t *nodes, uint64_t index);
static ron_status_t nodes_load(ron_nodes_t *nodes, const nodes_need_t *need,
    uint64_t leaf, uint64_t size, ron_tile_source_pt source, void *ctx);
static ron_status_t nodes_grow_alone(ron_nodes_t *nodes, nodes_made_t *made,
    uint64_t size, ron_tile_source_pt source, void *ctx);
static ron_status_t nodes_grow(ron_nodes_t *nodes, ron_tile_t *tile,
    uint64_t size, ron_tile_source_pt source, void *ctx);
static void nodes_make(ron_nodes_t *nodes, uint64_t leaf,
    nodes_made_t *made);
static void nodes_keep(ron_nodes_t *nodes, const nodes_made_t *made);
static void nodes_copy(ron_hash_t *to, const nodes_made_t *made);


ron_status_t
ron_nodes_create(ron_digest_t digest, size_t ram, ron_nodes_t **out)
{
    ron_nodes_t  *nodes;

    *out = NULL;
    nodes = calloc(1, sizeof(ron_nodes_t));

    if (nodes == NULL) {
        return RON_ENOMEM;
    }

    nodes->digest = digest;
    nodes->set_n = ron_max(ram / 2
                           / (sizeof(nodes_slot_t) + sizeof(nodes_body_t))
                           / NODES_WAYS, 1);
    nodes->top_n = ron_max(ram / 2 / sizeof(nodes_top_t), 1);
    nodes->slots = calloc(nodes->set_n * NODES_WAYS, sizeof(nodes_slot_t));
    nodes->bodies = calloc(nodes->set_n * NODES_WAYS, sizeof(nodes_body_t));
    nodes->tops = calloc(nodes->top_n, sizeof(nodes_top_t));

    if (nodes->slots == NULL || nodes->bodies == NULL || nodes->tops == NULL
        || ron_mutex_create(&nodes->lock, RON_LOCK_NODES) != RON_OK)
    {
        free(nodes->slots);
        free(nodes->bodies);
        free(nodes->tops);
        free(nodes);
        return RON_ENOMEM;
    }

    if (ron_cond_create(&nodes->grown) != RON_OK) {
        ron_mutex_destroy(nodes->lock);
        free(nodes->slots);
        free(nodes->bodies);
        free(nodes->tops);
        free(nodes);
        return RON_ENOMEM;
    }

    *out = nodes;

    return RON_OK;
}


void
ron_nodes_free(ron_nodes_t *nodes)
{
    if (nodes != NULL) {
        ron_cond_destroy(nodes->grown);
        ron_mutex_destroy(nodes->lock);
        free(nodes->slots);
        free(nodes->bodies);
        free(nodes->tops);
        free(nodes);
    }
}


ron_status_t
ron_nodes_inclusion(ron_nodes_t *nodes, uint64_t index, uint64_t size,
    ron_tile_source_pt source, void *ctx, ron_hash_t *leaf, ron_hash_t *root,
    ron_proof_t *proof)
{
    bool           known;
    ron_status_t   rc;
    nodes_need_t  *missing;
    nodes_plan_t   plan;

    proof->n = 0;

    if (index >= size || size > RON_TREE_MAX) {
        return RON_ERANGE;
    }

    nodes_plan(&plan, index, size);

    ron_mutex_lock(nodes->lock);
    known = (nodes->fold_size == size);
    *root = nodes->fold[0];

    if (plan.fold != 0) {
        plan.need[plan.fold_at].hash = nodes->fold[plan.fold];
    }

    ron_mutex_unlock(nodes->lock);

    if (!known) {
        nodes_plan_peaks(&plan, size);
    }

    for (unsigned i = 0; !nodes_fetch(nodes, &plan, &missing); i++) {

        if (source == NULL || i == NODES_TRIES) {
            return RON_AGAIN;
        }

        rc = nodes_load(nodes, missing, index, size, source, ctx);
        if (rc != RON_OK) {
            return rc;
        }
    }

    if (!known) {
        nodes_fold(nodes, &plan, size, root);
    }

    *leaf = plan.need[plan.path_n].hash;
    proof->n = plan.path_n;

    /* from the leaf up, and the plan went down */

    for (uint32_t i = 0; i < proof->n; i++) {
        proof->path[i] = plan.need[proof->n - 1 - i].hash;
    }

    return RON_OK;
}


/* ---- which nodes -------------------------------------------------------- */

static void
nodes_plan(nodes_plan_t *plan, uint64_t index, uint64_t size)
{
    unsigned  height;
    uint64_t  begin, n, left;
    uint32_t  peak;

    plan->need_n = 0;
    plan->peak_n = 0;
    plan->fold = 0;
    plan->fold_at = 0;
    begin = 0;
    n = size;
    peak = 0;

    while (n > 1) {
        height = 63 - (unsigned) __builtin_clzll(n - 1);
        left = (uint64_t) 1 << height;

        if (index - begin >= left) {
            nodes_plan_add(plan, height, begin);
            begin += left;
            n -= left;
            peak++;
            continue;
        }

        if (n == 2 * left) {
            nodes_plan_add(plan, height, begin + left);

        } else {
            plan->fold = peak + 1;
            plan->fold_at = plan->need_n;
            nodes_plan_add(plan, NODES_FOLD, 0);
        }

        n = left;
    }

    plan->path_n = plan->need_n;
    nodes_plan_add(plan, 0, index);
}


/* Complete subtrees, largest first: those of the bits of the size. */

static void
nodes_plan_peaks(nodes_plan_t *plan, uint64_t size)
{
    unsigned  height;
    uint64_t  begin;

    for (begin = 0; begin != size; begin += (uint64_t) 1 << height) {
        height = 63 - (unsigned) __builtin_clzll(size - begin);
        nodes_plan_add(plan, height, begin);
        plan->peak_n++;
    }
}


/* The node over 2^height leaves, of which `begin` is the first. */

static void
nodes_plan_add(nodes_plan_t *plan, unsigned height, uint64_t begin)
{
    nodes_need_t  *need;

    RON_ASSERT(plan->need_n < NODES_NEED);

    need = &plan->need[plan->need_n++];
    need->height = (uint8_t) height;
    need->index = height == NODES_FOLD ? 0 : begin >> height;
}


/* All that the peaks fold to, for the next ones who ask for this size. */

static void
nodes_fold(ron_nodes_t *nodes, nodes_plan_t *plan, uint64_t size,
    ron_hash_t *root)
{
    uint32_t       i;
    ron_hash_t     fold[NODES_PEAKS];
    nodes_need_t  *peak;

    peak = &plan->need[plan->path_n + 1];
    i = plan->peak_n - 1;
    fold[i] = peak[i].hash;

    while (i-- > 0) {
        ron_digest_node(nodes->digest, &peak[i].hash, &fold[i + 1], &fold[i]);
    }

    *root = fold[0];

    if (plan->fold != 0) {
        plan->need[plan->fold_at].hash = fold[plan->fold];
    }

    ron_mutex_lock(nodes->lock);
    nodes->fold_size = size;
    memcpy(nodes->fold, fold, plan->peak_n * sizeof(ron_hash_t));
    ron_mutex_unlock(nodes->lock);
}


/* ---- slots -------------------------------------------------------------- */

/* Where the nodes of a height begin in a slot. */

static uint32_t
nodes_at(unsigned height)
{
    return 512 - (512U >> height);
}


/* The index of the tile that a node is in. */

static uint64_t
nodes_tile(const nodes_need_t *need)
{
    return need->index >> (NODES_HEIGHT - need->height % NODES_HEIGHT);
}


/*
 * The first of the slots that a tile may be in: neighbours are in one set
 * after the other, so that as many of a level as there are slots have room.
 */

static nodes_slot_t *
nodes_set(ron_nodes_t *nodes, unsigned level, uint64_t index)
{
    return &nodes->slots[(index + level * 7) % nodes->set_n * NODES_WAYS];
}


/* The slot of a tile, or NULL.  The caller holds the lock. */

static nodes_slot_t *
nodes_find(ron_nodes_t *nodes, unsigned level, uint64_t index)
{
    nodes_slot_t  *slot;

    slot = nodes_set(nodes, level, index);

    for (unsigned i = 0; i < NODES_WAYS; i++) {
        if (slot[i].used != 0 && slot[i].index == index
            && slot[i].level == level)
        {
            slot[i].used = ++nodes->clock;
            return &slot[i];
        }
    }

    return NULL;
}


/*
 * The slot that makes room.  A tile above level 0 has many others below it
 * that come and go while it is needed now and then, so it ages slowly.
 */

static nodes_slot_t *
nodes_victim(ron_nodes_t *nodes, unsigned level, uint64_t index)
{
    uint64_t       age, oldest;
    nodes_slot_t  *slot, *set;

    set = nodes_set(nodes, level, index);
    slot = set;
    oldest = 0;

    for (unsigned i = 0; i < NODES_WAYS; i++) {
        if (set[i].used == 0) {
            return &set[i];
        }

        age = nodes->clock - set[i].used;

        if (set[i].level != 0) {
            age /= NODES_PATIENCE;
        }

        if (age > oldest) {
            oldest = age;
            slot = &set[i];
        }
    }

    return slot;
}


/* The place of a tile's two halves. */

static nodes_top_t *
nodes_top(ron_nodes_t *nodes, uint64_t index)
{
    return &nodes->tops[index % nodes->top_n];
}


/* The hashes of a slot. */

static ron_hash_t *
nodes_hashes(ron_nodes_t *nodes, const nodes_slot_t *slot)
{
    return nodes->bodies[slot - nodes->slots].hash;
}


static bool
nodes_fetch(ron_nodes_t *nodes, nodes_plan_t *plan, nodes_need_t **missing)
{
    unsigned       level, h;
    uint64_t       tile, at;
    nodes_need_t  *need;
    nodes_slot_t  *slot;

    *missing = NULL;
    slot = NULL;
    ron_mutex_lock(nodes->lock);

    for (uint32_t i = 0; i < plan->need_n && *missing == NULL; i++) {
        need = &plan->need[i];

        if (need->height == NODES_FOLD) {
            continue;
        }

        level = need->height / NODES_HEIGHT;
        h = need->height % NODES_HEIGHT;
        tile = nodes_tile(need);
        at = need->index - (tile << (NODES_HEIGHT - h));

        /* most of a path is in one tile */

        if (slot == NULL || slot->index != tile || slot->level != level) {
            slot = nodes_find(nodes, level, tile);
        }

        if (slot == NULL || !nodes_there(slot, h, at)) {
            *missing = need;

        } else {
            need->hash = nodes_hashes(nodes, slot)[nodes_at(h) + at];
        }
    }

    ron_mutex_unlock(nodes->lock);

    return *missing == NULL;
}


static bool
nodes_there(const nodes_slot_t *slot, unsigned h, uint64_t at)
{
    if ((at + 1) << h > slot->width) {
        return false;
    }

    /* the halves themselves are, whichever was made */

    return h == NODES_HEIGHT - 1
           || (slot->made >> (at >> (NODES_HEIGHT - 1 - h)) & 1) != 0;
}


/* Brings in the tile of a node, as wide as `size` leaves make it. */

static ron_status_t
nodes_load(ron_nodes_t *nodes, const nodes_need_t *need, uint64_t leaf,
    uint64_t size, ron_tile_source_pt source, void *ctx)
{
    uint64_t       n;
    ron_tile_t    *tile;
    ron_status_t   rc;
    nodes_made_t  *made;

    made = malloc(sizeof(nodes_made_t));

    if (made == NULL) {
        return RON_ENOMEM;
    }

    tile = &made->tile;
    tile->level = need->height / NODES_HEIGHT;
    tile->index = nodes_tile(need);
    n = (size >> (tile->level * NODES_HEIGHT))
        - tile->index * RON_TILE_WIDTH;
    tile->width = (uint16_t) ron_min(n, RON_TILE_WIDTH);

    if (tile->level == 0 || tile->width == RON_TILE_WIDTH) {
        rc = source(ctx, size, tile);

        if (rc == RON_OK) {
            nodes_make(nodes, leaf, made);
            nodes_keep(nodes, made);
        }

    } else {
        rc = nodes_grow_alone(nodes, made, size, source, ctx);
    }

    free(made);

    return rc;
}


/*
 * An upper tile is made of up to 255 others: one thread does that, the others
 * wait and find it done.  Who waits too long does it too, and nothing breaks.
 */

static ron_status_t
nodes_grow_alone(ron_nodes_t *nodes, nodes_made_t *made, uint64_t size,
    ron_tile_source_pt source, void *ctx)
{
    bool          alone;
    ron_status_t  rc;

    ron_mutex_lock(nodes->lock);

    for (unsigned i = 0; nodes->growing && i < NODES_WAITS; i++) {
        (void) ron_cond_wait(nodes->grown, nodes->lock, NODES_WAIT_US);
    }

    alone = !nodes->growing;
    nodes->growing = true;
    ron_mutex_unlock(nodes->lock);

    rc = nodes_grow(nodes, &made->tile, size, source, ctx);

    if (rc == RON_OK) {
        nodes_make(nodes, 0, made);
        nodes_keep(nodes, made);
    }

    if (alone) {
        ron_mutex_lock(nodes->lock);
        nodes->growing = false;
        ron_cond_broadcast(nodes->grown);
        ron_mutex_unlock(nodes->lock);
    }

    return rc;
}


/*
 * A partial tile of an upper level: what is known of it, and the roots of
 * the complete tiles below that came since.
 */

static ron_status_t
nodes_grow(ron_nodes_t *nodes, ron_tile_t *tile, uint64_t size,
    ron_tile_source_pt source, void *ctx)
{
    uint16_t       known;
    ron_tile_t    *below;
    ron_status_t   rc;
    nodes_slot_t  *slot;

    known = 0;
    below = malloc(sizeof(ron_tile_t));

    if (below == NULL) {
        return RON_ENOMEM;
    }

    ron_mutex_lock(nodes->lock);
    slot = nodes_find(nodes, tile->level, tile->index);

    if (slot != NULL) {
        known = ron_min(slot->width, tile->width);
        memcpy(tile->hashes, nodes_hashes(nodes, slot),
               known * sizeof(ron_hash_t));
    }

    ron_mutex_unlock(nodes->lock);
    rc = RON_OK;

    for (uint16_t i = known; i < tile->width && rc == RON_OK; i++) {
        below->level = tile->level - 1;
        below->index = tile->index * RON_TILE_WIDTH + i;
        below->width = RON_TILE_WIDTH;
        rc = source(ctx, size, below);

        if (rc == RON_OK) {
            ron_tile_root(nodes->digest, below, &tile->hashes[i]);
        }
    }

    free(below);

    return rc;
}


/*
 * The nodes over a tile; of one whose halves are known, those over the half
 * that the leaf is in.
 */

static void
nodes_make(ron_nodes_t *nodes, uint64_t leaf, nodes_made_t *made)
{
    bool          known;
    unsigned      first, width;
    ron_hash_t   *from, *to, half[2];
    nodes_top_t  *top;

    first = 0;
    width = made->tile.width;
    made->made = NODES_WHOLE;
    known = false;

    if (made->tile.level == 0 && width == RON_TILE_WIDTH) {
        top = nodes_top(nodes, made->tile.index);

        ron_mutex_lock(nodes->lock);

        if (top->tile == made->tile.index + 1) {
            known = true;
            half[0] = top->half[0];
            half[1] = top->half[1];
        }

        ron_mutex_unlock(nodes->lock);
    }

    if (known) {
        width = RON_TILE_WIDTH / 2;
        first = (unsigned) leaf & width;
        made->made = first == 0 ? 1 : 2;
    }

    from = made->tile.hashes;

    for (unsigned h = 1; h < NODES_HEIGHT; h++) {
        to = &made->above[nodes_at(h) - RON_TILE_WIDTH];
        ron_digest_nodes(nodes->digest, from + (first >> (h - 1)), width >> h,
                         to + (first >> h));
        from = to;
    }

    if (known) {
        from[0] = half[0];
        from[1] = half[1];
    }
}


static void
nodes_keep(ron_nodes_t *nodes, const nodes_made_t *made)
{
    bool               other;
    nodes_top_t       *top;
    nodes_slot_t      *slot;
    const ron_tile_t  *tile;

    tile = &made->tile;

    ron_mutex_lock(nodes->lock);

    if (tile->level == 0 && tile->width == RON_TILE_WIDTH) {
        top = nodes_top(nodes, tile->index);
        top->tile = tile->index + 1;
        top->half[0] = made->above[NODES_SLOT_N - 2 - RON_TILE_WIDTH];
        top->half[1] = made->above[NODES_SLOT_N - 1 - RON_TILE_WIDTH];
    }

    slot = nodes_find(nodes, tile->level, tile->index);
    other = (slot == NULL);

    if (other) {
        slot = nodes_victim(nodes, tile->level, tile->index);
    }

    /* another thread may have brought a wider one meanwhile */

    if (other || slot->width <= tile->width || slot->made != NODES_WHOLE) {
        other = other || slot->width != tile->width;
        slot->made = (uint8_t) (other ? made->made : slot->made | made->made);
        slot->used = ++nodes->clock;
        slot->index = tile->index;
        slot->level = tile->level;
        slot->width = tile->width;
        nodes_copy(nodes_hashes(nodes, slot), made);
    }

    ron_mutex_unlock(nodes->lock);
}


/* What was made of it: all, or one half and the two nodes over both. */

static void
nodes_copy(ron_hash_t *to, const nodes_made_t *made)
{
    unsigned           first, n, at;
    const ron_hash_t  *above;

    above = made->above;

    if (made->made == NODES_WHOLE) {
        memcpy(to, made->tile.hashes, sizeof(made->tile.hashes));
        memcpy(to + RON_TILE_WIDTH, above, sizeof(made->above));
        return;
    }

    n = RON_TILE_WIDTH / 2;
    first = made->made == 1 ? 0 : n;
    memcpy(to + first, made->tile.hashes + first, n * sizeof(ron_hash_t));

    for (unsigned h = 1; h < NODES_HEIGHT - 1; h++) {
        at = nodes_at(h) + (first >> h);
        memcpy(to + at, above + at - RON_TILE_WIDTH,
               (n >> h) * sizeof(ron_hash_t));
    }

    at = NODES_SLOT_N - 2;
    memcpy(to + at, above + at - RON_TILE_WIDTH, 2 * sizeof(ron_hash_t));
}
