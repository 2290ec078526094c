
#include "ron_nodes.h"
#include "ron_port.h"

#include <stdlib.h>


#define NODES_WAYS    8
#define NODES_HEIGHT  8                 /* of a tile */
#define NODES_SLOT_N  510

/* Peaks of a path's ranges and of the root: 64 each, and the leaf. */
#define NODES_NEED    (3 * 64)

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
} nodes_slot_t;

typedef struct {
    ron_hash_t  hash[NODES_SLOT_N];
} nodes_body_t;

struct ron_nodes_s {
    ron_digest_t   digest;
    ron_mutex_t   *lock;
    ron_cond_t    *grown;
    bool           growing;
    nodes_slot_t  *slots;
    nodes_body_t  *bodies;              /* of the slot of the same number */
    uint64_t       set_n;
    uint64_t       clock;
    uint64_t       root_size;           /* the last root that was made */
    ron_hash_t     root;
};


typedef struct {
    uint8_t     height;
    uint64_t    index;
    ron_hash_t  hash;
} nodes_need_t;

typedef struct {
    uint32_t  first;
    uint32_t  n;
} nodes_range_t;

/* The nodes of a path, range by range, then of the whole tree, then a leaf. */
typedef struct {
    nodes_need_t   need[NODES_NEED];
    uint32_t       need_n;
    nodes_range_t  range[RON_PROOF_MAX + 2];
    uint32_t       range_n;
} nodes_plan_t;


static void nodes_plan(nodes_plan_t *plan, uint64_t index, uint64_t size,
    bool root);
static void nodes_plan_range(nodes_plan_t *plan, uint64_t begin, uint64_t n);
static bool nodes_fetch(ron_nodes_t *nodes, nodes_plan_t *plan,
    nodes_need_t **missing);
static void nodes_fold(ron_digest_t digest, const nodes_plan_t *plan,
    uint32_t range, ron_hash_t *out);
static uint32_t nodes_at(unsigned height);
static uint64_t nodes_tile(const nodes_need_t *need);
static ron_hash_t *nodes_hashes(ron_nodes_t *nodes, const nodes_slot_t *slot);
static nodes_slot_t *nodes_set(ron_nodes_t *nodes, unsigned level,
    uint64_t index);
static nodes_slot_t *nodes_find(ron_nodes_t *nodes, unsigned level,
    uint64_t index);
static ron_status_t nodes_load(ron_nodes_t *nodes, const nodes_need_t *need,
    uint64_t size, ron_tile_source_pt source, void *ctx);
static ron_status_t nodes_grow_alone(ron_nodes_t *nodes, ron_tile_t *tile,
    uint64_t size, ron_tile_source_pt source, void *ctx);
static ron_status_t nodes_grow(ron_nodes_t *nodes, ron_tile_t *tile,
    uint64_t size, ron_tile_source_pt source, void *ctx);
static void nodes_keep(ron_nodes_t *nodes, const ron_tile_t *tile);


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
    nodes->set_n = ron_max(ram / (sizeof(nodes_slot_t) + sizeof(nodes_body_t))
                           / NODES_WAYS, 1);
    nodes->slots = calloc(nodes->set_n * NODES_WAYS, sizeof(nodes_slot_t));
    nodes->bodies = calloc(nodes->set_n * NODES_WAYS, sizeof(nodes_body_t));

    if (nodes->slots == NULL || nodes->bodies == NULL
        || ron_mutex_create(&nodes->lock, RON_LOCK_NODES) != RON_OK)
    {
        free(nodes->slots);
        free(nodes->bodies);
        free(nodes);
        return RON_ENOMEM;
    }

    if (ron_cond_create(&nodes->grown) != RON_OK) {
        ron_mutex_destroy(nodes->lock);
        free(nodes->slots);
        free(nodes->bodies);
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

    ron_mutex_lock(nodes->lock);
    known = (nodes->root_size == size);
    *root = nodes->root;
    ron_mutex_unlock(nodes->lock);

    nodes_plan(&plan, index, size, !known);

    for (unsigned i = 0; !nodes_fetch(nodes, &plan, &missing); i++) {

        if (source == NULL || i == NODES_TRIES) {
            return RON_AGAIN;
        }

        rc = nodes_load(nodes, missing, size, source, ctx);
        if (rc != RON_OK) {
            return rc;
        }
    }

    *leaf = plan.need[plan.need_n - 1].hash;
    proof->n = plan.range_n - !known;

    /* from the leaf up, and the plan went down */

    for (uint32_t i = 0; i < proof->n; i++) {
        nodes_fold(nodes->digest, &plan, proof->n - 1 - i, &proof->path[i]);
    }

    if (!known) {
        nodes_fold(nodes->digest, &plan, plan.range_n - 1, root);

        ron_mutex_lock(nodes->lock);
        nodes->root_size = size;
        nodes->root = *root;
        ron_mutex_unlock(nodes->lock);
    }

    return RON_OK;
}


/* ---- which nodes -------------------------------------------------------- */

static void
nodes_plan(nodes_plan_t *plan, uint64_t index, uint64_t size, bool root)
{
    uint64_t  begin, n, left;

    plan->need_n = 0;
    plan->range_n = 0;
    begin = 0;
    n = size;

    while (n > 1) {
        left = (uint64_t) 1 << (63 - __builtin_clzll(n - 1));

        if (index - begin < left) {
            nodes_plan_range(plan, begin + left, n - left);
            n = left;

        } else {
            nodes_plan_range(plan, begin, left);
            begin += left;
            n -= left;
        }
    }

    if (root) {
        nodes_plan_range(plan, 0, size);
    }

    plan->need[plan->need_n].height = 0;
    plan->need[plan->need_n++].index = index;
}


/* Complete subtrees, largest first: those of the bits of n. */

static void
nodes_plan_range(nodes_plan_t *plan, uint64_t begin, uint64_t n)
{
    unsigned        height;
    nodes_need_t   *need;
    nodes_range_t  *range;

    range = &plan->range[plan->range_n++];
    range->first = plan->need_n;

    while (n != 0) {
        RON_ASSERT(plan->need_n + 1 < NODES_NEED);

        height = 63 - (unsigned) __builtin_clzll(n);
        need = &plan->need[plan->need_n++];
        need->height = (uint8_t) height;
        need->index = begin >> height;
        begin += (uint64_t) 1 << height;
        n -= (uint64_t) 1 << height;
    }

    range->n = plan->need_n - range->first;
}


static void
nodes_fold(ron_digest_t digest, const nodes_plan_t *plan, uint32_t range,
    ron_hash_t *out)
{
    uint32_t  i, first;

    first = plan->range[range].first;
    i = first + plan->range[range].n - 1;
    *out = plan->need[i].hash;

    while (i-- > first) {
        ron_digest_node(digest, &plan->need[i].hash, out, out);
    }
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


/* The first of the slots that a tile may be in. */

static nodes_slot_t *
nodes_set(ron_nodes_t *nodes, unsigned level, uint64_t index)
{
    uint64_t  set;

    set = (index * UINT64_C(0x9e3779b97f4a7c15) >> 32) + level * 7;

    return &nodes->slots[set % nodes->set_n * NODES_WAYS];
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
        level = need->height / NODES_HEIGHT;
        h = need->height % NODES_HEIGHT;
        tile = nodes_tile(need);
        at = need->index - (tile << (NODES_HEIGHT - h));

        /* most of a path is in one tile */

        if (slot == NULL || slot->index != tile || slot->level != level) {
            slot = nodes_find(nodes, level, tile);
        }

        if (slot == NULL || (at + 1) << h > slot->width) {
            *missing = need;

        } else {
            need->hash = nodes_hashes(nodes, slot)[nodes_at(h) + at];
        }
    }

    ron_mutex_unlock(nodes->lock);

    return *missing == NULL;
}


/* Brings in the tile of a node, as wide as `size` leaves make it. */

static ron_status_t
nodes_load(ron_nodes_t *nodes, const nodes_need_t *need, uint64_t size,
    ron_tile_source_pt source, void *ctx)
{
    uint64_t       n;
    ron_tile_t    *tile;
    ron_status_t   rc;

    tile = malloc(sizeof(ron_tile_t));

    if (tile == NULL) {
        return RON_ENOMEM;
    }

    tile->level = need->height / NODES_HEIGHT;
    tile->index = nodes_tile(need);
    n = (size >> (tile->level * NODES_HEIGHT))
        - tile->index * RON_TILE_WIDTH;
    tile->width = (uint16_t) ron_min(n, RON_TILE_WIDTH);

    if (tile->level == 0 || tile->width == RON_TILE_WIDTH) {
        rc = source(ctx, size, tile);

        if (rc == RON_OK) {
            nodes_keep(nodes, tile);
        }

    } else {
        rc = nodes_grow_alone(nodes, tile, size, source, ctx);
    }

    free(tile);

    return rc;
}


/*
 * An upper tile is made of up to 255 others: one thread does that, the others
 * wait and find it done.  Who waits too long does it too, and nothing breaks.
 */

static ron_status_t
nodes_grow_alone(ron_nodes_t *nodes, ron_tile_t *tile, uint64_t size,
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

    rc = nodes_grow(nodes, tile, size, source, ctx);

    if (rc == RON_OK) {
        nodes_keep(nodes, tile);
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


static void
nodes_keep(ron_nodes_t *nodes, const ron_tile_t *tile)
{
    nodes_body_t  *made;
    nodes_slot_t  *slot, *set;

    made = malloc(sizeof(nodes_body_t));

    if (made == NULL) {
        return;
    }

    memcpy(made->hash, tile->hashes, tile->width * sizeof(ron_hash_t));

    for (unsigned h = 1; h < NODES_HEIGHT; h++) {
        ron_digest_nodes(nodes->digest, &made->hash[nodes_at(h - 1)],
                         tile->width >> h, &made->hash[nodes_at(h)]);
    }

    ron_mutex_lock(nodes->lock);
    slot = nodes_find(nodes, tile->level, tile->index);

    if (slot == NULL) {
        set = nodes_set(nodes, tile->level, tile->index);
        slot = set;

        for (unsigned i = 1; i < NODES_WAYS; i++) {
            slot = set[i].used < slot->used ? &set[i] : slot;
        }

        slot->width = 0;
    }

    /* another thread may have brought a wider one meanwhile */

    if (slot->width < tile->width) {
        slot->used = ++nodes->clock;
        slot->index = tile->index;
        slot->level = tile->level;
        slot->width = tile->width;
        memcpy(nodes_hashes(nodes, slot), made, sizeof(nodes_body_t));
    }

    ron_mutex_unlock(nodes->lock);
    free(made);
}
