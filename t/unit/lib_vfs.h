
/*
 * A disk that fails on command, and one that remembers.
 *
 * vfs_register() adds the SQLite VFS "ron-fault" over the default one.  Every
 * read, write, truncate and sync is counted; a plan makes one of them (or
 * it and all that follow) fail.  A test that includes lib_vfs_port.h counts
 * and breaks the files of ron_port.h the same way.
 *
 * The recorder keeps every change with its bytes.  vfs_rebuild() makes a
 * directory of what a disk may hold when the power went after `cut` of them:
 *
 *     a write is certain once its file was synced, or never, when that sync
 *     failed and lost it (VFS_LOST: the kernel drops dirty pages);
 *     a write that was not synced is there, is not, or is so in 512-byte
 *     sectors, whatever was written before or after it;
 *     names are certain once their directory was synced, and until then
 *     appear in the order in which they were made.
 *
 * One directory, any thread.
 */

#ifndef LIB_VFS_H
#define LIB_VFS_H


#include "ron_port.h"


#define VFS_NAME  "ron-fault"


typedef enum {
    VFS_READ = 0,
    VFS_WRITE,
    VFS_SYNC,
    VFS_TRUNCATE,
    VFS_OP_N
} vfs_op_t;


typedef enum {
    VFS_ANY = 0,                    /* of SQLite's */
    VFS_DB,
    VFS_WAL,
    VFS_JOURNAL,
    VFS_PORT,                       /* tags, head, mark */
    VFS_FILE_N
} vfs_file_class_t;


typedef enum {
    VFS_NONE = 0,
    VFS_FULL,                       /* a write: nothing written, ENOSPC */
    VFS_FULL_SHORT,                 /* half written, ENOSPC */
    VFS_EIO,                        /* any: nothing done */
    VFS_SHORT,                      /* a write: half written, EIO */
    VFS_LATE,                       /* a write: all written, EIO */
    VFS_LOST                        /* a sync: EIO, and the data is gone */
} vfs_fault_t;


typedef enum {
    VFS_DROP = 0,                   /* nothing that was not synced */
    VFS_KEEP,                       /* everything */
    VFS_PREFIX,                     /* up to some write, torn */
    VFS_RANDOM,                     /* any subset, torn */
    VFS_MODE_N
} vfs_mode_t;


void vfs_register(void);

/* Forgets plan, counts and trace.  Nothing may be open. */
void vfs_reset(void);

/* Operation `n` (1, 2, ...) of a kind, on files of a class, fails. */
void vfs_plan(vfs_fault_t fault, vfs_op_t op, vfs_file_class_t file,
    uint64_t n, bool sticky);
void vfs_heal(void);                /* no plan, and counts from 0 */
bool vfs_hit(void);                 /* since the last plan */
uint64_t vfs_count(vfs_op_t op, vfs_file_class_t file);

/*
 * Before step `n` (1, 2, ...) from here on, by anybody, `fn` is called, once;
 * a step is an operation as above, a lock of SQLite's or a look at a file's
 * size.  What fn does is not counted, and meanwhile, and until the next call
 * with NULL, nobody sleeps who waits for a lock.  For one thread.
 */
void vfs_between(uint64_t n, void (*fn)(void *ctx), void *ctx);
bool vfs_between_done(void);

/* Real syncs are left out: this machine's power is not what is tested. */
void vfs_sync_for_real(bool real);

/* The trace so far stays when recording is off. */
void vfs_record(bool on);
size_t vfs_trace_len(void);

/* The control: pretends that no sync ever happened. */
void vfs_ignore_syncs(bool ignore);

/* `dir` must be there and be empty. */
bool vfs_rebuild(size_t cut, vfs_mode_t mode, uint64_t seed,
    const char *dir);


/* ---- for lib_vfs_port.h ------------------------------------------------- */

/* What is to happen to this operation: VFS_NONE to go ahead. */
vfs_fault_t vfs_next(vfs_op_t op, vfs_file_class_t file);

/* The file of that name (made if `create` and not known), -1: unknown. */
int vfs_node(const char *name, bool create);
void vfs_wrote(int node, const void *data, size_t len, uint64_t off);
void vfs_cut(int node, uint64_t size);
void vfs_synced(int node);
void vfs_lost(int node);
void vfs_renamed(const char *from, const char *to);
void vfs_removed(const char *name);
void vfs_dir_synced(void);


#endif /* LIB_VFS_H */
