
/*
 * The port with the faults and the recorder of lib_vfs.h: included by one
 * source of a program, it takes the place of the library's own.  The real one
 * is in here too, under other names.
 */

#ifndef LIB_VFS_PORT_H
#define LIB_VFS_PORT_H


#define ron_file_open      real_file_open
#define ron_file_close     real_file_close
#define ron_file_truncate  real_file_truncate
#define ron_file_pread     real_file_pread
#define ron_file_pwrite    real_file_pwrite
#define ron_file_sync      real_file_sync
#define ron_dir_sync       real_dir_sync
#define ron_file_rename    real_file_rename
#define ron_file_unlink    real_file_unlink

#include "ron_port_posix.c"

#undef ron_file_open
#undef ron_file_close
#undef ron_file_truncate
#undef ron_file_pread
#undef ron_file_pwrite
#undef ron_file_sync
#undef ron_dir_sync
#undef ron_file_rename
#undef ron_file_unlink

#include "lib_vfs.h"


#define VFS_FDS  1024


ron_status_t ron_file_open(const char *path, unsigned flags, ron_fd_t *fd);
void ron_file_close(ron_fd_t fd);
ron_status_t ron_file_truncate(ron_fd_t fd, uint64_t size);
ron_status_t ron_file_pread(ron_fd_t fd, void *buf, size_t len, uint64_t off);
ron_status_t ron_file_pwrite(ron_fd_t fd, const void *buf, size_t len,
    uint64_t off);
ron_status_t ron_file_sync(ron_fd_t fd);
ron_status_t ron_dir_sync(const char *path);
ron_status_t ron_file_rename(const char *from, const char *to);
ron_status_t ron_file_unlink(const char *path);


/* A number that one thread closes may be opened by another at once. */

static _Atomic int  vfs_fd_node[VFS_FDS];


ron_status_t
ron_file_open(const char *path, unsigned flags, ron_fd_t *fd)
{
    ron_status_t  status;

    status = real_file_open(path, flags, fd);

    if (status == RON_OK) {
        RON_ASSERT(*fd < VFS_FDS);
        vfs_fd_node[*fd] = (flags & RON_OPEN_DIR)
                           ? -1 : vfs_node(path, (flags & RON_OPEN_CREATE));
    }

    return status;
}


void
ron_file_close(ron_fd_t fd)
{
    real_file_close(fd);
}


ron_status_t
ron_file_truncate(ron_fd_t fd, uint64_t size)
{
    if (vfs_next(VFS_TRUNCATE, VFS_PORT) != VFS_NONE) {
        return RON_EIO;
    }

    vfs_cut(vfs_fd_node[fd], size);

    return real_file_truncate(fd, size);
}


ron_status_t
ron_file_pread(ron_fd_t fd, void *buf, size_t len, uint64_t off)
{
    return vfs_next(VFS_READ, VFS_PORT) != VFS_NONE
           ? RON_EIO : real_file_pread(fd, buf, len, off);
}


ron_status_t
ron_file_pwrite(ron_fd_t fd, const void *buf, size_t len, uint64_t off)
{
    size_t        done;
    vfs_fault_t   fault;
    ron_status_t  status;

    fault = vfs_next(VFS_WRITE, VFS_PORT);

    done = (fault == VFS_NONE || fault == VFS_LATE) ? len
           : (fault == VFS_SHORT || fault == VFS_FULL_SHORT) ? len / 2 : 0;

    status = RON_OK;

    if (done > 0) {
        status = real_file_pwrite(fd, buf, done, off);
        vfs_wrote(vfs_fd_node[fd], buf, done, off);
    }

    return fault == VFS_NONE ? status
           : fault == VFS_FULL || fault == VFS_FULL_SHORT ? RON_EFULL
           : RON_EIO;
}


ron_status_t
ron_file_sync(ron_fd_t fd)
{
    vfs_fault_t  fault;

    fault = vfs_next(VFS_SYNC, VFS_PORT);

    if (fault == VFS_LOST) {
        vfs_lost(vfs_fd_node[fd]);
    }

    if (fault != VFS_NONE) {
        return RON_EIO;
    }

    vfs_synced(vfs_fd_node[fd]);

    return RON_OK;
}


ron_status_t
ron_dir_sync(const char *path)
{
    (void) path;

    if (vfs_next(VFS_SYNC, VFS_PORT) != VFS_NONE) {
        return RON_EIO;
    }

    vfs_dir_synced();

    return RON_OK;
}


ron_status_t
ron_file_rename(const char *from, const char *to)
{
    ron_status_t  status;

    if (vfs_next(VFS_WRITE, VFS_PORT) != VFS_NONE) {
        return RON_EIO;
    }

    status = real_file_rename(from, to);

    if (status == RON_OK) {
        vfs_renamed(from, to);
    }

    return status;
}


ron_status_t
ron_file_unlink(const char *path)
{
    ron_status_t  status;

    status = real_file_unlink(path);

    if (status == RON_OK) {
        vfs_removed(path);
    }

    return status;
}


#endif /* LIB_VFS_PORT_H */
