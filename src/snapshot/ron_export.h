
/*
 * A whole ledger as text: NDJSON, one object a line, UTF-8, \n at the end.
 *
 *     {"ron_export":1,"ledger_id":7,"digest":"blake3","created_ms":...,
 *      "from":1,"to":1000}
 *     {"commit":{"seq":1,"count":2,"epoch":1,"time_ms":...,
 *      "prev_root":"<hex>","root":"<hex>","checkpoint":"<hex>",
 *      "chain":"<hex>","notes":"<base64>"}}
 *     {"seq":1,"bytes":"<base64 canonical bytes>","entry":{...}}
 *     {"seq":2,"bytes":"...","entry":{...}}
 *     ...
 *     {"end":{"seq":1000,"commits":...,"root":"<hex>","chain":"<hex>"}}
 *
 * A commit's line is followed by the lines of its entries.  `checkpoint` and
 * `notes` are absent when there are none.  `bytes` is what counts; `entry` is
 * the same for people and other programs, and an import refuses a line whose
 * two halves do not say the same.  Without its last line a text is not whole.
 */

#ifndef RON_EXPORT_H
#define RON_EXPORT_H


#include "ron_audit.h"


/* No line is longer: a commit with its notes, or an entry. */
#define RON_EXPORT_LINE_MAX  ((size_t) 64 << 20)


/* Takes text; any answer but RON_OK ends the export with it. */
typedef ron_status_t (*ron_export_pt)(void *ctx, ron_str_t text);

typedef struct {
    uint64_t           seq;
    uint64_t           commits;
    uint64_t           took_us;
    ron_hash_t         root;
    ron_hash_t         chain;
    ron_ledger_meta_t  meta;
} ron_export_info_t;


/*
 * Writes the ledger up to the head that is there now, in short transactions.
 * Chain and roots are checked on the way: what is damaged is not exported.
 */
ron_status_t ron_export(ron_store_t *store, ron_export_pt sink, void *ctx,
    ron_progress_pt progress, void *progress_ctx, ron_export_info_t *info,
    ron_buf_t *why);


typedef struct ron_import_s  ron_import_t;

/* `dir` must not hold a ledger; the first line says which one it will be. */
ron_status_t ron_import_open(const char *dir, ron_import_t **import,
    ron_buf_t *why);

/* One line, with or without its \n.  *why names the line. */
ron_status_t ron_import_line(ron_import_t *import, ron_str_t line,
    ron_buf_t *why);

/*
 * After the last line: RON_EINVAL when the text was not whole.  Then the
 * result is audited.  Frees the import either way.
 */
ron_status_t ron_import_finish(ron_import_t *import, ron_progress_pt progress,
    void *ctx, ron_export_info_t *info, ron_buf_t *why);
void ron_import_abort(ron_import_t *import);


#endif /* RON_EXPORT_H */
