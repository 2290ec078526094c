
/*
 * What trace.c writes and cut.c reads: everything that happened to the files
 * of one directory, in the order in which it happened.  A record is a
 * trace_rec_t and `len` bytes.
 *
 * A sync is two records: what was written before it began is on the disk
 * once it has ended.
 */

#ifndef TRACE_H
#define TRACE_H


#include <stdint.h>


typedef enum {
    TRACE_WRITE = 1,                        /* off, the bytes */
    TRACE_SIZE,                             /* off: the size it is given */
    TRACE_SYNC_BEGIN,                       /* off: the number of the sync */
    TRACE_SYNC_END,
    TRACE_MAKE,                             /* a name that was not there */
    TRACE_RENAME,                           /* two names, each with its NUL */
    TRACE_REMOVE                            /* a name */
} trace_type_t;


typedef struct {
    uint64_t  us;                           /* of the monotonic clock */
    uint64_t  inode;                        /* 0: the directory */
    uint64_t  off;
    uint32_t  len;
    uint32_t  type;
} trace_rec_t;


#endif /* TRACE_H */
