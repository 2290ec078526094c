
/*
 * Tags: what a ledger must never forget, or forget only after a day.
 *
 * A tag is 128 bits of BLAKE3 over what it stands for (a tuple, an entry id,
 * a batch id, an idempotency key), and its value is the seq of the newest entry
 * that it was seen in.  The set of tags grows for ever; RAM does not.
 *
 *   newest    an open-addressing table in RAM, sized once ("active")
 *   turning   a full table, frozen, being written out in the background
 *   older     immutable sorted segment files, each with a filter in RAM that
 *             answers misses; a few segments of one tier become one of the
 *             next, so that there are O(log n) of them
 *
 * A tag leaves RAM only when its segment is durable (data synced, name synced,
 * manifest replaced).  A tag is put only after its entry was decided, with
 * ascending seq, and may be taken back (ron_tags_undo) as long as its seq is
 * above every committed one.  Only tags with seq <= the committed watermark
 * given to ron_tags_commit() are ever written to a segment.
 *
 * The journal is the truth: ron_tags_covered() says up to which seq segments
 * hold everything, and recovery puts again what came after.  A segment whose
 * file, header or filter is missing or damaged is left out at open together
 * with all newer ones, which lowers the coverage.  A block found bad at
 * look-up makes ron_tags_get() return RON_ECORRUPT.  Either way the caller
 * puts again from the journal: from the coverage on, or after ron_tags_reset()
 * everything.
 *
 * The one duty of the caller: never call ron_tags_commit() with a seq before
 * every tag up to that seq has been put (in recovery too), since the next
 * segment will claim to hold them all.
 *
 * Tags have to be evenly spread, as hashes are; if they are not, speed is lost
 * and nothing else.  Where strangers choose what is hashed, hash with a key.
 *
 * One thread owns the handle; one background thread, inside, writes segments
 * and merges.  get/put take no lock but when a table is full.
 */

#ifndef RON_TAGS_H
#define RON_TAGS_H


#include "ron.h"


#define RON_TAG_LEN  16

typedef struct {
    uint8_t  b[RON_TAG_LEN];
} ron_tag_t;


typedef struct ron_tags_s  ron_tags_t;

typedef struct {
    const char  *dir;               /* NULL: RAM only, the table grows */
    const char  *name;              /* file name prefix: "tag", "key" */
    uint64_t     ledger_id;         /* written into segments, must match */
    size_t       ram_bytes;         /* both tables together */
    uint32_t     fanout;            /* segments of a tier before a merge,
                                       2..64; 0 is 8 */
    uint64_t     span;              /* entries that segments are behind, and
                                       a start reads again; 0 is 100 000 */
    bool         read_only;         /* a follower: no files are written */
} ron_tags_conf_t;


typedef struct {
    uint64_t  ram_tags;             /* in active and frozen tables */
    uint64_t  ram_bytes;            /* tables, as allocated */
    uint64_t  filter_bytes;
    uint64_t  disk_tags;
    uint64_t  disk_bytes;
    uint32_t  segments;
    uint64_t  lookups;
    uint64_t  filter_hits;          /* look-ups that had to read a block */
    uint64_t  waits;                /* puts that waited for the writer */
    uint64_t  merges;
    uint64_t  write_failures;       /* tables and expiries, each try */
    uint64_t  merge_failures;
    bool      failing;              /* the last write or merge did not work */
} ron_tags_stat_t;


/*
 * Opens the directory's segments and checks manifest, headers and filters.
 * What is damaged is left out, said in a log line, and lowers the coverage.
 * Files that the manifest does not name are removed (not when read_only).
 * The caller holds the lock that makes it the only writer of the directory.
 *
 * RON_EVERSION for a later format and RON_EINVAL for the files of another
 * ledger, RON_EIO when a file that is there cannot be opened, RON_ENOMEM: then
 * nothing is touched.
 */
ron_status_t ron_tags_open(const ron_tags_conf_t *conf, ron_tags_t **tags);

/*
 * Waits for the table that is being written out and gives up a merge.
 * Unwritten tags stay in the journal only.  NULL is fine.
 */
void ron_tags_close(ron_tags_t *tags);

/*
 * Every tag with seq <= this is in a segment, or has expired (0: none are).
 * Brought up to date by ron_tags_commit() and ron_tags_flush().
 */
uint64_t ron_tags_covered(const ron_tags_t *tags);

/*
 * RON_OK and the seq, RON_ENOTFOUND, RON_EIO or RON_ECORRUPT.  An expired tag
 * is found for as long as its segment or table is there.
 */
ron_status_t ron_tags_get(ron_tags_t *tags, const ron_tag_t *tag,
    uint64_t *seq);

/*
 * Starts fetching what ron_tags_get() will touch.  Purely a hint, best given
 * 16 to 32 tags ahead: one tag takes a cache line or two for each table and
 * one for each segment.
 */
void ron_tags_prefetch(ron_tags_t *tags, const ron_tag_t *tag);

/*
 * Remembers a tag.  The greatest seq wins: an idempotency key that has lived
 * its day may be used again, and then stands for its newest entry; putting
 * what is there already is a no-op.  seq is at least 1 (else RON_EINVAL) and
 * never falls from one put to the next, but after an undo or when putting
 * again.  Only RAM is touched.
 *
 * Waits when both tables are full until the background writer has made room.
 * RON_EIO when that writer cannot: the tag is then kept all the same, over the
 * bound, and every put says so until it is over.  Only RON_ENOMEM means that
 * it is not kept.
 */
ron_status_t ron_tags_put(ron_tags_t *tags, const ron_tag_t *tag,
    uint64_t seq);

/*
 * Forgets every tag with seq > last_seq, exactly.  last_seq must not be below
 * the committed watermark: an assertion.
 */
void ron_tags_undo(ron_tags_t *tags, uint64_t last_seq);

/*
 * Entries up to here are durable; their tags, all of them put, may go to
 * segments.  ledger_ms is the time of the last one.  A lower seq than before
 * is ignored.  Never waits; call it once per batch.
 */
void ron_tags_commit(ron_tags_t *tags, uint64_t committed_seq,
    uint64_t ledger_ms);

/*
 * Drops whole segments whose newest tag was committed before `before_ms`
 * (ledger time): for idempotency keys, which live a day.  Done in the
 * background, soon, and tried again until it works; coverage stays.  From the
 * first call on, segments that would span more time than tags live (the last
 * commit's time less before_ms) are not made, so a dead tag stays for at most
 * about as long again.
 */
ron_status_t ron_tags_expire(ron_tags_t *tags, uint64_t before_ms);

/*
 * For a read-only follower that has become the writer: opens what the last
 * writer left, keeps what is only in this RAM, starts writing segments.  When
 * ron_tags_covered() is lower afterwards than it was before, segments were
 * lost that this RAM relied on: RAM is then empty, and the caller puts again
 * from the coverage on, as after opening.
 */
ron_status_t ron_tags_promote(ron_tags_t *tags);

/*
 * Throws everything away, segments and RAM, and the watermark with them: a
 * rebuild from the journal follows.  RON_EINVAL for a follower; when it fails
 * nothing is forgotten.
 */
ron_status_t ron_tags_reset(ron_tags_t *tags);

/*
 * Writes out now what is committed, does what was asked to expire, and waits:
 * for tests, for tools, and before an orderly shutdown, so that the next start
 * has less to read.  The writer's reason if it cannot.  Nothing to do without
 * files, or for a follower.
 */
ron_status_t ron_tags_flush(ron_tags_t *tags);

/*
 * Checks every block of every segment: RON_ECORRUPT, or why it cannot be read.
 * Reads all there is, on the owner's thread.
 */
ron_status_t ron_tags_check(ron_tags_t *tags);

void ron_tags_stat(const ron_tags_t *tags, ron_tags_stat_t *stat);


#endif /* RON_TAGS_H */
