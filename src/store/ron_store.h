
/*
 * The store: "append these bytes after this head, make them durable, tell
 * me".  Everything that the ledger must keep passes through one call,
 * ron_store_append(), once a commit; everything else only reads.
 *
 * A commit is one journal row:
 *
 *     seq         of its first entry; the first row of a ledger has seq 1
 *     count       entries in it (at least 1)
 *     epoch       of the writer; one more each time a ledger is taken over
 *     time_ms     ledger time of the batch
 *     prev_root   the tree's root before, and
 *     root        after its entries
 *     checkpoint  hash of the newest complete checkpoint before it, or zeros
 *     body        canonical entries, each behind its varint length
 *     notes       outcomes of keyed batches (ron_lookup.c), mostly empty
 *     chain       BLAKE3 over the chain of the row before and all the columns:
 *                 chain | seq | count | epoch | time_ms | prev_root | root |
 *                 checkpoint | length of body | length of notes | body | notes
 *                 (numbers and lengths as u64, big-endian)
 *
 * and, in the same transaction, the tiles that became complete and at most
 * one slice of a checkpoint in progress.
 *
 * Two stores: sqlite (one directory) and memory (a region that the embedder
 * owns; no file is ever created).  Exactly one writer: the store holds the
 * ledger's lock for as long as it may append, and the journal itself refuses
 * a row that does not follow the head or comes from an older epoch.
 *
 * Threads and processes.  A store handle is used by one thread at a time, and
 * so is each reader; a thread may open readers from a handle that another one
 * writes with.  Handles are opened after fork() and are not carried across.
 */

#ifndef RON_STORE_H
#define RON_STORE_H


#include "ron.h"
#include "ron_buf.h"
#include "ron_tree.h"


typedef struct {
    uint64_t    seq;
    uint64_t    count;
    uint64_t    epoch;
    uint64_t    time_ms;
    ron_hash_t  prev_root;
    ron_hash_t  root;
    ron_hash_t  checkpoint;
    ron_hash_t  chain;
    ron_str_t   body;
    ron_str_t   notes;
} ron_row_t;


/*
 * A slice of an engine checkpoint: generation, number, the seq up to which
 * its content is right, opaque bytes.  The last one says so.
 */
typedef struct {
    uint64_t   gen;
    uint32_t   no;
    bool       last;
    uint64_t   seq;
    ron_str_t  body;
} ron_slice_t;


/* What never changes about a ledger. */
typedef struct {
    uint32_t      format;           /* 1 */
    uint16_t      ledger_id;
    ron_digest_t  digest;
    uint64_t      created_ms;
} ron_ledger_meta_t;


typedef struct ron_store_s   ron_store_t;
typedef struct ron_reader_s  ron_reader_t;


typedef struct {
    const char    *url;             /* "sqlite:<dir>" or "memory:<size>" */
    void          *region;          /* memory: where the journal lives, all
                                       zeros at first, aligned to 16; NULL:
                                       private memory, for tests and tools */
    size_t         region_len;      /* the size that the url says */
    ron_digest_t   digest;          /* used when the ledger is created */
    uint16_t       ledger_id;       /* likewise; 0: from ron_random() */
    bool           create;          /* make the ledger if it is not there */
    const char    *vfs;             /* SQLite VFS name, NULL: the default */
    uint32_t       wal_pages;       /* the WAL starts over past this; 1000 */
} ron_store_conf_t;


/*
 * Opens a ledger without any right to write: its meta data, and readers.
 * RON_ENOTFOUND: no ledger there (and !create).  RON_EVERSION: newer format.
 * RON_EINVAL: a url that makes no sense, or a directory that is not private
 * to its owner.  RON_AGAIN: somebody else is making the ledger, and slowly.
 *
 * Readers are closed before their store is.
 */
ron_status_t ron_store_open(const ron_store_conf_t *conf, ron_store_t **store);
void ron_store_close(ron_store_t *store);

const ron_ledger_meta_t *ron_store_meta(const ron_store_t *store);
const char *ron_store_dir(const ron_store_t *store);    /* NULL: memory */

/*
 * What the last failed call of this handle ran into, for a log line; of NULL,
 * the last ron_store_open() of this thread.
 */
const char *ron_store_error(const ron_store_t *store);

/*
 * Takes the writer's lock, if nobody holds it: RON_AGAIN when somebody does.
 * Then the epoch is raised, durably, so that every earlier writer is fenced.
 * On success *epoch is ours.  ron_store_release() gives the lock back; the
 * kernel does it for a process that dies.  RON_EEXIST: this handle has it.
 * RON_EINVAL: the directory belongs to another user.
 */
ron_status_t ron_store_acquire(ron_store_t *store, uint64_t *epoch);
void ron_store_release(ron_store_t *store);

/*
 * The commit.  Blocks until durable.  row->chain is computed here, from
 * `prev_chain` (zeros for the first row), and returned in *row.
 *
 *   RON_OK        it is on disk
 *   RON_EFENCED   another writer was here: nothing was written
 *   RON_EFULL     no room: nothing was written
 *   RON_EINVAL    not a row, tile or slice at all: nothing was written
 *   RON_EEXIST    this slice is there already: nothing was written
 *   RON_EIO,...   in doubt: it may be there after reopening; no later append
 *                 on this handle will ever succeed
 *
 * Each tile comes with the row that holds its last leaf, lowest level first.
 * The memory store does not keep slices, and takes them without a word.
 */
ron_status_t ron_store_append(ron_store_t *store, ron_row_t *row,
    const ron_hash_t *prev_chain, const ron_tile_t *tiles, size_t tile_n,
    const ron_slice_t *slice);

/*
 * Between commits, on the committer's thread: WAL checkpoint when past its
 * bound, and old checkpoint generations go (all below keep_gen; a bounded
 * piece of them a call).  A failure undoes no commit; the next append tells
 * whether it was one to end this writer.
 */
ron_status_t ron_store_maintain(ron_store_t *store, uint64_t keep_gen);

/*
 * The published head: the signed note of the newest commit, written in place
 * after it and not synced.  What a reader finds there is a promise that was
 * made: a journal that ends before it has been cut.  At most 4068 bytes
 * (RON_ERANGE).  RON_ENOTFOUND: never written, or torn.
 */
ron_status_t ron_store_head_write(ron_store_t *store, ron_str_t note);
ron_status_t ron_store_head_read(ron_store_t *store, ron_buf_t *note);

/*
 * The safe-mode mark: a preallocated page written in place and synced.  An
 * empty reason clears it, which takes the lock; to set it does not.
 * ron_store_mark_read(): RON_ENOTFOUND when clear; a mark that is torn or
 * cannot be read is one with the reason "unreadable mark".
 */
ron_status_t ron_store_mark_write(ron_store_t *store, ron_str_t reason);
ron_status_t ron_store_mark_read(ron_store_t *store, ron_buf_t *reason);

/* RON_OK when a page can be written and synced beside the journal. */
ron_status_t ron_store_probe(ron_store_t *store);


/* ---- readers: any number, any thread or process, one thread each -------- */

/*
 * A reader holds no transaction between calls: each call sees the newest
 * commit and ends in well under 100 ms.  Views are good until the next call.
 * RON_AGAIN: the log is being recovered this instant, ask again.
 */
ron_status_t ron_reader_open(ron_store_t *store, ron_reader_t **reader);
void ron_reader_close(ron_reader_t *reader);
const char *ron_reader_error(const ron_reader_t *reader);

/* The newest row; RON_ENOTFOUND in an empty ledger. */
ron_status_t ron_reader_head(ron_reader_t *reader, ron_row_t *row);

/*
 * Calls between hold and release cost less: nothing is begun and ended for
 * each.  In SQLite they see one state of the ledger, the first one's, and the
 * writer cannot start its log over meanwhile, so it must be over in
 * RON_READER_HOLD_US.  Once more of either changes nothing.
 */
#define RON_READER_HOLD_US  50000

ron_status_t ron_reader_hold(ron_reader_t *reader);
ron_status_t ron_reader_release(ron_reader_t *reader);

/* The row that holds entry `seq`; RON_ENOTFOUND past the head. */
ron_status_t ron_reader_row(ron_reader_t *reader, uint64_t seq,
    ron_row_t *row);

/*
 * Up to `max_bytes` of rows, the first of them holding `seq`, each given to
 * fn in order; *next is the seq after the last one given.  RON_ENOTFOUND when
 * there was none.  fn must not call this reader; if it fails, so does the
 * call, and *next is the seq of the row that it refused.  A page may end
 * before max_bytes: after 50 ms or 8 MiB.
 */
typedef ron_status_t (*ron_row_pt)(void *ctx, const ron_row_t *row);

ron_status_t ron_reader_rows(ron_reader_t *reader, uint64_t seq,
    size_t max_bytes, ron_row_pt fn, void *ctx, uint64_t *next);

/* A complete tile as stored; RON_ENOTFOUND when it is not complete yet. */
ron_status_t ron_reader_tile(ron_reader_t *reader, uint8_t level,
    uint64_t index, ron_tile_t *tile);

/* Newest generation of slices <= gen; *count slices, *complete. */
ron_status_t ron_reader_gen(ron_reader_t *reader, uint64_t max_gen,
    uint64_t *gen, uint32_t *count, bool *complete);
ron_status_t ron_reader_slice(ron_reader_t *reader, uint64_t gen,
    uint32_t no, ron_slice_t *slice);


/* ---- pure helpers, shared by stores, tools and tests -------------------- */

void ron_row_chain(const ron_hash_t *prev_chain, const ron_row_t *row,
    ron_hash_t *chain);

/*
 * A ron_tile_source_pt over a reader: complete tiles from the store, the
 * partial ones of the right edge from the journal's last entries.
 */
typedef struct {
    ron_reader_t  *reader;
    ron_digest_t   digest;
} ron_tile_reader_t;

ron_status_t ron_tile_from_reader(void *ctx, uint64_t size, ron_tile_t *tile);


#endif /* RON_STORE_H */
