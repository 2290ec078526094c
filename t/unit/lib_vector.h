
/*
 * Golden vectors: the entries and the malformed byte strings of
 * t/vectors/entries.json, and a second encoder that writes what it is told,
 * right or wrong.
 *
 * The encoder shares no line with src/entry: it appends field by field what
 * docs/FORMAT.md says, checks nothing, and so makes the malformed ones too.
 */

#ifndef LIB_VECTOR_H
#define LIB_VECTOR_H


#include "ron_entry.h"


#define VECTORS_MAX  128


typedef struct {
    const char   *name;
    ron_entry_t   e;
} vector_t;


typedef struct {
    const char    *name;
    const char    *why;
    ron_status_t   status;              /* what decoding answers */
    ron_buf_t      bytes;
} refused_t;


/* The entries, in the order of the file. */
const vector_t *vectors(size_t *n);

/* The malformed ones; owned here and good for ever. */
const refused_t *vectors_refused(size_t *n);

/* The bytes of an entry without a single check. */
void vector_raw(const ron_entry_t *e, ron_buf_t *out);

/* Transfer `seq` of a ledger of plain transfers, for trees and journals. */
void vector_plain(uint64_t seq, uint64_t time_ms, ron_entry_t *e);

/*
 * 0 when the file holds exactly `want`, else the first line that differs (1
 * when it cannot be read).
 */
unsigned vector_file_differs(const char *path, const ron_buf_t *want);


#endif /* LIB_VECTOR_H */
