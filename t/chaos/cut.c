
/*
 * The power goes: makes a directory of what a disk may hold when that was
 * just before one of the changes in a trace (trace.c).
 *
 *     cut TRACE                                lists the changes
 *     cut TRACE N MODE SEED DIR [LIES]         the power goes before change N
 *
 * A write is certain once a sync of its file that began after it has ended.
 * What is not certain is, by MODE,
 *
 *     drop     not there
 *     keep     there
 *     prefix   there up to some write, of which a part is
 *     random   there or not, each write for itself, some in 512-byte sectors
 *
 * for each file by itself, so what was written later to one file may be there
 * and what was written before to another may not.  Names are certain once the
 * directory was synced, and until then there in the order in which they were
 * made.  With LIES no sync of a file whose name ends so ('': any) has done
 * anything: a control, since that must lose what was answered.
 *
 * DIR must be there and be empty.  Says how many writes are lost.
 */

#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


#define CUT_NAME    128
#define CUT_FILES   65536
#define CUT_SECTOR  512


typedef enum {
    CUT_DROP = 0,
    CUT_KEEP,
    CUT_PREFIX,
    CUT_RANDOM
} cut_mode_t;


typedef struct {
    const trace_rec_t  *rec;
    const char         *data;
    uint32_t            file;
} change_t;


typedef struct {
    uint64_t            inode;
    uint64_t            sure;               /* changes before are certain */
    uint64_t            unsure;             /* how many are not */
    uint64_t            keep;               /* of those */
    int                 fd;
    char                name[CUT_NAME];
    const char         *made;               /* its first name */
} file_t;


static change_t  *changes;
static uint64_t   change_n;
static file_t     files[CUT_FILES];
static uint32_t   file_n = 1;               /* 0: the directory */
static uint64_t   rnd;
static uint64_t   lost;


static void
die(const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    (void) fprintf(stderr, "cut: ");
    (void) vfprintf(stderr, format, args);
    (void) fprintf(stderr, "\n");
    va_end(args);

    exit(2);
}


static uint64_t
draw(uint64_t n)
{
    rnd ^= rnd << 13;
    rnd ^= rnd >> 7;
    rnd ^= rnd << 17;

    return rnd % n;
}


/* ---- the trace ---------------------------------------------------------- */

/* The newest file of an inode: numbers are used again. */
static uint32_t
file_find(uint64_t inode)
{
    uint32_t  i;

    if (inode == 0) {
        return 0;
    }

    for (i = file_n; i-- > 1;) {
        if (files[i].inode == inode) {
            return i;
        }
    }

    die("a change of inode %llu, which nobody made",
        (unsigned long long) inode);

    return 0;
}


static void
trace_read(const char *path)
{
    int                 fd;
    char               *p, *end;
    uint64_t            room = 0;
    change_t           *c;
    struct stat         st;
    const trace_rec_t  *rec;

    fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        die("%s: %s", path, errno ? strerror(errno) : "empty");
    }

    p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        die("%s: %s", path, strerror(errno));
    }

    for (end = p + st.st_size; p < end; p += sizeof(*rec) + rec->len) {
        if (change_n == room) {
            room = room == 0 ? 65536 : room * 2;
            changes = realloc(changes, room * sizeof(*changes));
            if (changes == NULL) {
                die("no memory");
            }
        }

        /* records are not aligned */

        c = &changes[change_n++];
        rec = malloc(sizeof(*rec));

        if (rec == NULL || (size_t) (end - p) < sizeof(*rec)) {
            die("%s: the end is missing", path);
        }

        memcpy((void *) (uintptr_t) rec, p, sizeof(*rec));
        c->rec = rec;
        c->data = p + sizeof(*rec);

        if (rec->type == TRACE_MAKE) {
            if (file_n == CUT_FILES) {
                die("more than %d files", CUT_FILES);
            }

            files[file_n].fd = -1;
            files[file_n].made = c->data;
            files[file_n++].inode = rec->inode;
        }

        c->file = file_find(rec->inode);
    }

    (void) close(fd);
}


static bool
is_name(const change_t *c)
{
    return c->rec->type >= TRACE_MAKE;
}


static void
list(void)
{
    uint64_t            i;
    const change_t     *c;
    static const char  *what[] = { "?", "write", "size", "sync", "synced",
                                   "make", "rename", "remove" };
    for (i = 0; i < change_n; i++) {
        c = &changes[i];

        (void) printf("%llu %llu %s %s %u\n", (unsigned long long) i,
                      (unsigned long long) c->rec->us, what[c->rec->type],
                      is_name(c) ? c->data : c->file == 0 ? "."
                                            : files[c->file].made,
                      c->rec->len);
    }
}


/* ---- what is certain ---------------------------------------------------- */

static bool
lied(const file_t *f, const char *lies)
{
    size_t  n, len;

    if (lies == NULL || f->made == NULL) {
        return lies != NULL && *lies == '\0';
    }

    n = strlen(lies);
    len = strlen(f->made);

    return len >= n && strcmp(f->made + len - n, lies) == 0;
}


static void
certain(uint64_t cut, cut_mode_t mode, const char *lies)
{
    uint32_t   f;
    uint64_t   i, k;
    change_t  *c;

    for (i = 0; i < cut; i++) {
        if (changes[i].rec->type != TRACE_SYNC_END
            || lied(&files[changes[i].file], lies))
        {
            continue;
        }

        for (k = i; k-- > 0;) {
            c = &changes[k];

            if (c->rec->type == TRACE_SYNC_BEGIN
                && c->rec->off == changes[i].rec->off)
            {
                if (files[c->file].sure < k) {
                    files[c->file].sure = k;
                }

                break;
            }
        }
    }

    for (i = 0; i < cut; i++) {
        c = &changes[i];
        f = is_name(c) ? 0 : c->file;

        if (c->rec->type != TRACE_SYNC_BEGIN && c->rec->type != TRACE_SYNC_END
            && i >= files[f].sure)
        {
            files[f].unsure++;
        }
    }

    for (f = 0; f < file_n; f++) {
        files[f].keep = mode == CUT_DROP ? 0
                        : mode == CUT_KEEP || (mode == CUT_RANDOM && f != 0)
                          ? files[f].unsure : draw(files[f].unsure + 1);
    }
}


/* ---- names -------------------------------------------------------------- */

static uint32_t
named(const char *name)
{
    uint32_t  f;

    for (f = 1; f < file_n; f++) {
        if (strcmp(files[f].name, name) == 0) {
            return f;
        }
    }

    die("%s, which is not there", name);

    return 0;
}


static void
names(uint64_t cut)
{
    uint32_t         f, old;
    uint64_t         i, k = 0;
    const char      *to;
    const change_t  *c;

    for (i = 0; i < cut; i++) {
        c = &changes[i];

        if (!is_name(c) || (i >= files[0].sure && ++k > files[0].keep)) {
            continue;
        }

        if (c->rec->type == TRACE_MAKE) {
            (void) snprintf(files[c->file].name, CUT_NAME, "%s", c->data);

        } else if (c->rec->type == TRACE_REMOVE) {
            files[named(c->data)].name[0] = '\0';

        } else {
            f = named(c->data);
            to = c->data + strlen(c->data) + 1;

            for (old = 1; old < file_n; old++) {
                if (strcmp(files[old].name, to) == 0) {
                    files[old].name[0] = '\0';
                }
            }

            (void) snprintf(files[f].name, CUT_NAME, "%s", to);
        }
    }
}


/* ---- bytes -------------------------------------------------------------- */

static void
land(int fd, const change_t *c, bool torn)
{
    size_t       done, n;
    const char  *p = c->data;

    if (c->rec->type == TRACE_SIZE) {
        if (ftruncate(fd, (off_t) c->rec->off) != 0) {
            die("ftruncate: %s", strerror(errno));
        }

        return;
    }

    for (done = 0; done < c->rec->len; done += n) {
        n = CUT_SECTOR - (c->rec->off + done) % CUT_SECTOR;
        n = torn && n < c->rec->len - done ? n : c->rec->len - done;

        if (torn && draw(2) == 0) {
            continue;
        }

        if (pwrite(fd, p + done, n, (off_t) (c->rec->off + done))
            != (ssize_t) n)
        {
            die("pwrite: %s", strerror(errno));
        }
    }
}


static void
bytes(uint64_t cut, cut_mode_t mode)
{
    bool             torn;
    file_t          *f;
    uint64_t         i;
    const change_t  *c;
    static uint64_t  k[CUT_FILES];

    for (i = 0; i < cut; i++) {
        c = &changes[i];
        f = &files[c->file];

        if (is_name(c) || f->fd < 0 || (c->rec->type != TRACE_WRITE
                                        && c->rec->type != TRACE_SIZE))
        {
            continue;
        }

        torn = false;

        if (i >= f->sure) {
            k[c->file]++;

            if (k[c->file] > f->keep
                || (mode == CUT_RANDOM && draw(3) == 0))
            {
                lost++;
                continue;
            }

            torn = (mode == CUT_PREFIX && k[c->file] == f->keep)
                   || (mode == CUT_RANDOM && draw(4) == 0);
        }

        land(f->fd, c, torn);
    }
}


static void
rebuild(uint64_t cut, cut_mode_t mode, const char *lies, const char *dir)
{
    char      path[4096];
    uint32_t  f;

    certain(cut, mode, lies);
    names(cut);

    for (f = 1; f < file_n; f++) {
        if (files[f].name[0] == '\0') {
            continue;
        }

        (void) snprintf(path, sizeof(path), "%s/%s", dir, files[f].name);
        files[f].fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (files[f].fd < 0) {
            die("%s: %s", path, strerror(errno));
        }
    }

    bytes(cut, mode);
    (void) printf("%llu\n", (unsigned long long) lost);
}


int
main(int argc, char **argv)
{
    int                 mode;
    uint64_t            cut;
    static const char  *modes[] = { "drop", "keep", "prefix", "random" };

    if (argc != 2 && argc != 6 && argc != 7) {
        die("usage: cut TRACE [N MODE SEED DIR [LIES]]");
    }

    trace_read(argv[1]);

    if (argc == 2) {
        list();
        return 0;
    }

    cut = strtoull(argv[2], NULL, 10);

    for (mode = 0; mode < 4 && strcmp(argv[3], modes[mode]) != 0; mode++) {
        /* void */
    }

    if (cut > change_n || mode == 4) {
        die("%s changes of %llu, %s", argv[2], (unsigned long long) change_n,
            argv[3]);
    }

    rnd = strtoull(argv[4], NULL, 10) * 2654435761u + 88172645463325252u;
    rebuild(cut, (cut_mode_t) mode, argv[6], argv[5]);

    return 0;
}
