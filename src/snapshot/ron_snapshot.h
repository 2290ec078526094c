
/*
 * Snapshots: copies of a ledger that prove what they are.
 *
 * A snapshot is a directory with a ledger.db of its own, which every command
 * of ronctl can read, and `manifest`: a checkpoint note in the format of
 * ron_note.h, signed, with these extension lines
 *
 *     ron-snapshot 1
 *     ledger <id> <digest> <created, milliseconds>
 *     commits <number> from seq 1
 *     chain <hex of the last commit's chain>
 *     time <ledger time of the last commit, milliseconds> epoch <its epoch>
 *     ledger.db <bytes> b3:<hex>
 *
 * Any tool that reads transparency logs reads it as a checkpoint of the
 * ledger at that size.
 *
 * Taking one reads the source in short transactions up to the head that was
 * there at the beginning: the writer is never stopped nor made to wait.  A
 * snapshot is taken again into the same directory by copying what came since.
 * The manifest is replaced last; a copy that was interrupted has rows that no
 * manifest speaks of, and restoring leaves them out.
 */

#ifndef RON_SNAPSHOT_H
#define RON_SNAPSHOT_H


#include "ron_audit.h"
#include "ron_note.h"


#define RON_SNAPSHOT_MANIFEST  "manifest"


typedef struct {
    uint64_t           seq;             /* the height */
    uint64_t           first;           /* first seq that was copied now */
    uint64_t           commits;
    uint64_t           time_ms;
    uint64_t           epoch;
    uint64_t           bytes;           /* of ledger.db */
    uint64_t           took_us;
    ron_hash_t         root;
    ron_hash_t         chain;
    ron_hash_t         file;
    ron_ledger_meta_t  meta;
    bool               damaged_file;    /* restore: other bytes than signed */
} ron_snapshot_info_t;


/*
 * RON_ECORRUPT: source or snapshot is damaged, or the source is behind the
 * snapshot; RON_EEXIST: the directory is of another ledger; RON_EFENCED: a
 * snapshot is being taken into it.  *why says so.
 */
ron_status_t ron_snapshot_take(ron_store_t *source, const char *dir,
    const ron_signer_t *signer, ron_progress_pt progress, void *ctx,
    ron_snapshot_info_t *info, ron_buf_t *why);

/*
 * Reads and verifies a manifest.  An empty key: parsed, not verified.
 * RON_ENOTFOUND: there is none.
 */
ron_status_t ron_snapshot_manifest(const char *dir, ron_str_t public_key,
    ron_snapshot_info_t *info, ron_buf_t *why);

/*
 * Makes of a snapshot a ledger in `dir`, which must not hold one: every row
 * is copied and checked up to the signed height, the root and the chain there
 * are compared with the signed ones, and then the result is audited in full.
 * What is in `dir` after a failure is not a ledger to serve.
 */
ron_status_t ron_snapshot_restore(const char *snapshot, ron_str_t public_key,
    const char *dir, ron_progress_pt progress, void *ctx,
    ron_snapshot_info_t *info, ron_buf_t *why);


#endif /* RON_SNAPSHOT_H */
