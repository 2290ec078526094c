
/*
 * src/base: statuses, buffers and readers, the log, the port.
 */

#include "ron_test.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ron_buf.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_siphash.h"


static char  dir[] = "/tmp/ron_base_test.XXXXXX";


static const char *
path(const char *name)
{
    static char  text[4][256];
    static int   n;

    n = (n + 1) % 4;
    (void) snprintf(text[n], sizeof(text[n]), "%s/%s", dir, name);

    return text[n];
}


typedef struct {
    unsigned         n;
    ron_log_level_t  level;
    char             line[2048];
} sink_t;


static void
sink(void *ctx, ron_log_level_t level, const char *line)
{
    sink_t  *s = ctx;

    s->n++;
    s->level = level;
    (void) snprintf(s->line, sizeof(s->line), "%s", line);
}


/* ---- ron_siphash.h ------------------------------------------------------ */

/* OpenSSL's, and every way to cut a text into two. */

static void
test_siphash(void)
{
    uint64_t      wrong;
    size_t        n, cut, len;
    EVP_MAC      *mac;
    uint8_t       key[16], text[67], want[16];
    ron_sip_t     sip;
    uint64_t      out[2];
    EVP_MAC_CTX  *ctx;
    OSSL_PARAM    size[2];
    ron_sipkey_t  k;

    RON_ASSERT(ron_random(key, sizeof(key)) == RON_OK);
    RON_ASSERT(ron_random(text, sizeof(text)) == RON_OK);
    memcpy(&k, key, sizeof(k));

    mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    ctx = EVP_MAC_CTX_new(mac);
    len = sizeof(want);
    size[0] = OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &len);
    size[1] = OSSL_PARAM_construct_end();
    RON_ASSERT(ctx != NULL && EVP_MAC_CTX_set_params(ctx, size) == 1);

    wrong = 0;

    for (n = 0; n <= sizeof(text); n++) {
        RON_ASSERT(EVP_MAC_init(ctx, key, sizeof(key), NULL) == 1
                   && EVP_MAC_update(ctx, text, n) == 1
                   && EVP_MAC_final(ctx, want, &len, sizeof(want)) == 1
                   && len == sizeof(want));

        for (cut = 0; cut <= n; cut++) {
            ron_sip_init(&sip, &k);
            ron_sip_update(&sip, text, cut);
            ron_sip_update(&sip, text + cut, n - cut);
            ron_sip_final(&sip, out);
            wrong += memcmp(out, want, sizeof(want)) != 0;
        }
    }

    is_u64(wrong, 0, "SipHash-2-4 of 128 bits is OpenSSL's, however cut");

    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
}


/* ---- ron.h -------------------------------------------------------------- */


static void
test_status(void)
{
    int       i, j, same;
    sink_t    s;
    uint64_t  n;

    same = 0;
    memset(&s, 0, sizeof(s));
    ron_log_set(sink, &s, RON_LOG_WARN);

    for (i = 0; i < RON_STATUS_N; i++) {
        for (j = 0; j < i; j++) {
            same += strcmp(ron_status_name((ron_status_t) i),
                           ron_status_name((ron_status_t) j)) == 0;
        }
    }

    is_u64(same, 0, "every status has a name of its own");
    is_str(ron_status_name(RON_ECORRUPT), "corrupt", "corrupt");
    is_str(ron_status_name(RON_ENOMEM), "no memory", "no memory");
    is_str(ron_status_name((ron_status_t) 99), "unknown status", "no status");

    n = ron_corrupt_count();
    is_status(ron_corrupt(), RON_ECORRUPT, "ron_corrupt() is RON_ECORRUPT");
    is_u64(ron_corrupt_count(), n + 1, "and is counted");
    ok(strstr(s.line, "base_test.c:") != NULL, "the log says where");
    (void) ron_corrupt();
    is_u64(ron_corrupt_count(), n + 2, "the second is counted");
    is_u64(s.n, 1, "and not logged");

    ron_log_set(NULL, NULL, RON_LOG_WARN);
}


static void
test_str(void)
{
    ok(ron_str_eq(ron_str("abc"), ron_cstr("abc")), "equal strings");
    ok(!ron_str_eq(ron_str("abc"), ron_str("abd")), "other byte");
    ok(!ron_str_eq(ron_str("abc"), ron_str("ab")), "other length");
    ok(ron_str_eq(ron_null_str, ron_str("")), "null is empty");

    ok(ron_str_cmp(ron_str("a"), ron_str("b")) < 0, "a < b");
    ok(ron_str_cmp(ron_str("b"), ron_str("a")) > 0, "b > a");
    ok(ron_str_cmp(ron_str("a"), ron_str("ab")) < 0, "a < ab");
    ok(ron_str_cmp(ron_str("ab"), ron_str("a")) > 0, "ab > a");
    ok(ron_str_cmp(ron_str("\x80"), ron_str("\x7f")) > 0, "bytes, not chars");
    is_i64(ron_str_cmp(ron_null_str, ron_str("")), 0, "null is empty here too");
}


static void
test_assert(void)
{
    int    state;
    pid_t  pid;

    RON_ASSERT(1 == 1);

    pid = fork();
    if (pid == 0) {
        (void) !freopen("/dev/null", "w", stderr);
        RON_ASSERT(1 == 2);
        _exit(0);
    }

    (void) waitpid(pid, &state, 0);
    ok(WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT,
       "a false assertion aborts");
}


/* ---- ron_log.h ---------------------------------------------------------- */


static void
test_log(void)
{
    char    big[4000];
    sink_t  s;

    memset(&s, 0, sizeof(s));
    ron_log_set(sink, &s, RON_LOG_INFO);

    ron_log(RON_LOG_INFO, "seq %d taken", 7);
    is_str(s.line, "seq 7 taken", "a line is formatted");
    is_u64(s.level, RON_LOG_INFO, "with its level");

    ron_log(RON_LOG_DEBUG, "quiet");
    is_u64(s.n, 1, "what is above the level is not logged");

    ron_log(RON_LOG_ALERT, "a\nb\tc\x7f");
    is_str(s.line, "a?b?c?", "control bytes cannot forge a line");

    memset(big, 'x', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    ron_log(RON_LOG_WARN, "%s", big);
    is_u64(strlen(s.line), 1023, "a long line is cut");

    ron_log_set(NULL, NULL, RON_LOG_WARN);
}


/* ---- ron_buf.h ---------------------------------------------------------- */


static void
test_buf_growth(void)
{
    int        wrong;
    size_t     i;
    ron_buf_t  b;

    ron_buf_init(&b, 0);
    is_status(ron_buf_status(&b), RON_OK, "an empty buffer is fine");
    is_u64(b.len, 0, "and empty");

    for (i = 0; i < 100000; i++) {
        ron_buf_put_u8(&b, (uint8_t) (i * 7));
    }

    wrong = 0;

    for (i = 0; i < 100000; i++) {
        wrong += b.data[i] != (uint8_t) (i * 7);
    }

    is_u64(b.len, 100000, "100000 bytes, one by one");
    is_u64(wrong, 0, "all of them as put");
    ok(b.cap < 300000, "capacity is within a factor of the need");

    ron_buf_put(&b, NULL, 0);
    ron_buf_put_str(&b, ron_null_str);
    is_u64(b.len, 100000, "putting nothing puts nothing");

    ron_buf_reset(&b);
    is_u64(b.len, 0, "reset empties");
    ok(b.cap >= 100000, "and keeps the memory");

    ron_buf_free(&b);
    ok(b.data == NULL && b.len == 0 && b.cap == 0, "free frees");

    ron_buf_put_cstr(&b, "again");
    ok(ron_str_eq(ron_buf_str(&b), ron_str("again")), "and is usable again");
    ron_buf_free(&b);
}


static void
test_buf_max(void)
{
    ron_buf_t  b;

    ron_buf_init(&b, 10);
    ron_buf_put_cstr(&b, "0123456");
    ron_buf_put_cstr(&b, "789");
    is_status(ron_buf_status(&b), RON_OK, "exactly the bound fits");

    ron_buf_put(&b, "", 0);
    is_status(ron_buf_status(&b), RON_OK, "and nothing more still fits");

    ron_buf_put_u8(&b, 'x');
    is_status(ron_buf_status(&b), RON_EFULL, "one more does not");
    is_u64(b.len, 10, "nothing of it is there");
    ok(ron_buf_reserve(&b, 0) == NULL, "a failed buffer reserves nothing");

    ron_buf_reset(&b);
    ron_buf_put_cstr(&b, "01234567");
    ron_buf_put_u32(&b, 1);
    ron_buf_put_u8(&b, 2);
    is_u64(b.len, 8, "after a failure even what would fit is ignored");
    is_status(ron_buf_status(&b), RON_EFULL, "the failure stays");

    ron_buf_reset(&b);
    is_status(ron_buf_status(&b), RON_OK, "until reset");
    ron_buf_put_u128(&b, 1);
    is_u64(b.len, 0, "no half of a u128");

    ron_buf_reset(&b);
    ron_buf_put_lstr(&b, ron_str("0123456789"));
    is_status(ron_buf_status(&b), RON_EFULL, "a string and its length");
    is_u64(b.len, 0, "no length without its string");

    ron_buf_reset(&b);
    ron_buf_printf(&b, "%d-%s", 12345, "abcd");
    ok(ron_str_eq(ron_buf_str(&b), ron_str("12345-abcd")),
       "printf needs no room for its terminator");
    ron_buf_printf(&b, "%s", "");
    is_status(ron_buf_status(&b), RON_OK, "printf of nothing in a full buffer");
    ron_buf_printf(&b, "%c", 'x');
    is_status(ron_buf_status(&b), RON_EFULL, "printf over the bound");
    is_u64(b.len, 10, "leaves what was there");

    ron_buf_free(&b);
    is_u64(b.max, 10, "free keeps the bound");
}


static void
test_buf_no_memory(void)
{
    ron_buf_t  b;

    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, "kept");

    ok(ron_buf_reserve(&b, SIZE_MAX) == NULL, "a size that overflows");
    is_status(ron_buf_status(&b), RON_ENOMEM, "is no memory");
    ok(ron_str_eq(ron_buf_str(&b), ron_str("kept")), "what was there stays");

    ron_buf_reset(&b);
    ok(ron_buf_reserve(&b, SIZE_MAX / 4) == NULL, "a size nobody has");
    is_status(ron_buf_status(&b), RON_ENOMEM, "is no memory");
    ron_buf_free(&b);

    ron_buf_init(&b, SIZE_MAX / 3);
    ok(ron_buf_reserve(&b, SIZE_MAX / 4) == NULL, "also below a bound");
    is_status(ron_buf_status(&b), RON_ENOMEM, "is no memory, not full");
    ron_buf_reset(&b);
    is_u64(b.max, SIZE_MAX / 3, "the bound is as it was");
    ok(ron_buf_reserve(&b, SIZE_MAX / 2) == NULL, "above the bound");
    is_status(ron_buf_status(&b), RON_EFULL, "is full");
    ron_buf_free(&b);
}


static void
test_buf_printf(void)
{
    char       want[301];
    ron_buf_t  b;

    memset(want, 'y', 300);
    want[300] = '\0';

    ron_buf_init(&b, 0);
    ron_buf_printf(&b, "%s", want);
    ron_buf_printf(&b, "%s", "!");
    is_u64(b.len, 301, "printf grows the buffer");
    is_mem(b.data, want, 300, "and prints all");
    is_u64(b.data[300], '!', "and goes on behind it");
    ron_buf_free(&b);
}


static void
test_buf_bytes(void)
{
    ron_buf_t  b;

    static const uint8_t  want[] = {
        0x01,
        0x02, 0x03,
        0x04, 0x05, 0x06, 0x07,
        0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
        0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
        0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d,
        0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25,
        0xac, 0x02,
        0x03, 'a', 'b', 'c'
    };

    ron_buf_init(&b, 0);
    ron_buf_put_u8(&b, 0x01);
    ron_buf_put_u16(&b, 0x0203);
    ron_buf_put_u32(&b, 0x04050607);
    ron_buf_put_u48(&b, UINT64_C(0x08090a0b0c0d));
    ron_buf_put_u64(&b, UINT64_C(0x0e0f101112131415));
    ron_buf_put_u128(&b, (ron_u128_t) UINT64_C(0x161718191a1b1c1d) << 64
                         | UINT64_C(0x1e1f202122232425));
    ron_buf_put_varint(&b, 300);
    ron_buf_put_lstr(&b, ron_str("abc"));

    is_u64(b.len, sizeof(want), "the canonical bytes have their length");
    is_mem(b.data, want, sizeof(want), "big-endian, varint little groups");
    ron_buf_free(&b);
}


/* ---- integers there and back -------------------------------------------- */


/* Every 2^n - 1, 2^n, 2^n + 1, which is where encodings change length. */

static void
test_integers(void)
{
    int         wrong, bit, d;
    uint64_t    v;
    ron_rd_t    rd;
    ron_buf_t   b;
    ron_u128_t  w;

    ron_buf_init(&b, 0);
    wrong = 0;

    for (bit = 0; bit < 64; bit++) {
        for (d = -1; d <= 1; d++) {

            v = (UINT64_C(1) << bit) + (uint64_t) (int64_t) d;
            w = (ron_u128_t) v << 64 | ~v;

            ron_buf_reset(&b);
            ron_buf_put_u8(&b, (uint8_t) v);
            ron_buf_put_u16(&b, (uint16_t) v);
            ron_buf_put_u32(&b, (uint32_t) v);
            ron_buf_put_u48(&b, v & UINT64_C(0xffffffffffff));
            ron_buf_put_u64(&b, v);
            ron_buf_put_u128(&b, w);
            ron_buf_put_varint(&b, v);

            ron_rd_init(&rd, ron_buf_str(&b));
            wrong += ron_rd_u8(&rd) != (uint8_t) v;
            wrong += ron_rd_u16(&rd) != (uint16_t) v;
            wrong += ron_rd_u32(&rd) != (uint32_t) v;
            wrong += ron_rd_u48(&rd) != (v & UINT64_C(0xffffffffffff));
            wrong += ron_rd_u64(&rd) != v;
            wrong += ron_rd_u128(&rd) != w;
            wrong += ron_rd_varint(&rd) != v;
            wrong += ron_rd_end(&rd) != RON_OK;
        }
    }

    is_u64(wrong, 0, "every integer at its edges, there and back");

    ron_buf_reset(&b);
    ron_buf_put_varint(&b, UINT64_MAX);
    is_u64(b.len, 10, "the longest varint has 10 bytes");
    ron_rd_init(&rd, ron_buf_str(&b));
    ok(ron_rd_varint(&rd) == UINT64_MAX && ron_rd_end(&rd) == RON_OK,
       "and is the largest number");

    ron_buf_free(&b);
}


static void
test_varint_form(void)
{
    size_t    i;
    uint64_t  v;
    ron_rd_t  rd;

    static const struct {
        ron_str_t    bytes;
        bool         good;
        const char  *why;
    } tests[] = {
        { { 1, (const uint8_t *) "\x00" }, true, "zero" },
        { { 1, (const uint8_t *) "\x7f" }, true, "one byte" },
        { { 2, (const uint8_t *) "\x80\x01" }, true, "two bytes" },
        { { 2, (const uint8_t *) "\x80\x00" }, false, "zero in two bytes" },
        { { 2, (const uint8_t *) "\xff\x00" }, false, "127 in two bytes" },
        { { 3, (const uint8_t *) "\x80\x80\x00" }, false,
          "zero in three bytes" },
        { { 10, (const uint8_t *) "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
          true, "2^64 - 1" },
        { { 10, (const uint8_t *) "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02" },
          false, "over 2^64" },
        { { 10, (const uint8_t *) "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00" },
          false, "zero in ten bytes" },
        { { 11,
            (const uint8_t *) "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x00" },
          false, "eleven bytes" },
        { { 1, (const uint8_t *) "\x80" }, false, "cut after one byte" },
        { { 0, NULL }, false, "nothing" }
    };

    for (i = 0; i < ron_array_n(tests); i++) {

        ron_rd_init(&rd, tests[i].bytes);
        v = ron_rd_varint(&rd);

        ok((ron_rd_end(&rd) == RON_OK) == tests[i].good
           && rd.failed == !tests[i].good && (tests[i].good || v == 0),
           "varint: %s is %s", tests[i].why,
           tests[i].good ? "taken" : "refused");
    }
}


static void
test_reader(void)
{
    ron_rd_t    rd;
    ron_str_t   s;
    ron_hash_t  hash;

    ron_rd_init(&rd, ron_str("\x01\x02\x03"));
    is_u64(ron_rd_u16(&rd), 0x0102, "a u16 of three bytes");
    is_u64(ron_rd_left(&rd), 1, "one is left");
    is_status(ron_rd_end(&rd), RON_EINVAL, "which is not the end");
    is_u64(ron_rd_u16(&rd), 0, "no second u16");
    ok(rd.failed, "the reader failed");
    is_u64(ron_rd_left(&rd), 0, "a failed reader has nothing left");
    is_u64(ron_rd_u8(&rd), 0, "not even what was there");
    is_status(ron_rd_end(&rd), RON_EINVAL, "and never ends well");

    ron_rd_init(&rd, ron_str("\x03" "abcd"));
    s = ron_rd_lstr(&rd);
    ok(ron_str_eq(s, ron_str("abc")), "a string with its length");
    s = ron_rd_bytes(&rd, 1);
    ok(ron_str_eq(s, ron_str("d")), "and bytes behind it");
    is_status(ron_rd_end(&rd), RON_OK, "is all");

    ron_rd_init(&rd, ron_str("\x04" "abc"));
    s = ron_rd_lstr(&rd);
    ok(s.len == 0 && rd.failed, "a string longer than the bytes");

    ron_rd_init(&rd,
                ron_str("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" "abc"));
    s = ron_rd_lstr(&rd);
    ok(s.len == 0 && rd.failed, "a string of 2^64 - 1 bytes");

    ron_rd_init(&rd, ron_null_str);
    s = ron_rd_bytes(&rd, 0);
    ok(s.len == 0, "no bytes of nothing");
    is_status(ron_rd_end(&rd), RON_OK, "is fine");

    ron_rd_init(&rd, ron_str("0123456789abcdef0123456789abcdef"));
    ron_rd_hash(&rd, &hash);
    is_mem(hash.b, "0123456789abcdef0123456789abcdef", 32, "a hash");
    ron_rd_hash(&rd, &hash);
    is_mem(hash.b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
           "\0\0\0\0", 32, "a hash that is not there is zero");

    ron_rd_init(&rd, ron_str("0123456789abcde"));
    ok(ron_rd_u128(&rd) == 0 && rd.failed, "15 bytes are no u128");
}


/* ---- ron_port.h: clock, randomness -------------------------------------- */


static void
test_clock(void)
{
    time_t    now;
    uint64_t  a, b, wall;
    uint8_t   r1[600], r2[600];

    now = time(NULL);
    wall = ron_clock_wall_ms();
    ok(wall >= (uint64_t) now * 1000 - 1000
       && wall <= (uint64_t) now * 1000 + 5000, "the wall clock is the time");

    a = ron_clock_mono_us();
    ron_sleep_us(20000);
    b = ron_clock_mono_us();
    ok(b - a >= 20000, "a sleep of 20 ms is not shorter: %" PRIu64 " us",
       b - a);
    ok(b - a < 5000000, "nor seconds");

    memset(r1, 0, sizeof(r1));
    memset(r2, 0, sizeof(r2));
    is_status(ron_random(r1, sizeof(r1)), RON_OK, "600 random bytes");
    is_status(ron_random(r2, sizeof(r2)), RON_OK, "and 600 more");
    ok(memcmp(r1, r2, sizeof(r1)) != 0, "are not the same");
    ok(memcmp(r1, r1 + 300, 300) != 0, "nor are their halves");
}


/* ---- ron_port.h: files -------------------------------------------------- */


static void
test_file(void)
{
    char          buf[16];
    uint64_t      size;
    ron_fd_t      fd, fd2;
    struct stat   st;

    is_status(ron_file_open(path("a"), RON_OPEN_READ, &fd), RON_ENOTFOUND,
              "an absent file");
    is_i64(fd, RON_FD_NONE, "is no descriptor");
    is_i64(ron_port_errno(), ENOENT, "the reason is kept");
    is_str(ron_port_error(), "No such file or directory", "in words too");

    is_status(ron_file_open(path("a"), RON_OPEN_WRITE | RON_OPEN_CREATE
                            | RON_OPEN_EXCL, &fd),
              RON_OK, "is created");
    ok(fd > 2, "and is not one of stdio");
    is_status(ron_file_open(path("a"), RON_OPEN_WRITE | RON_OPEN_CREATE
                            | RON_OPEN_EXCL, &fd2),
              RON_EEXIST, "but not twice");

    ok(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600, "mode 0600");
    ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "closed on exec");

    is_status(ron_file_pwrite(fd, "hello", 5, 3), RON_OK, "a write at 3");
    is_status(ron_file_pwrite(fd, "", 0, 100), RON_OK, "a write of nothing");
    is_status(ron_file_size(fd, &size), RON_OK, "a size");
    is_u64(size, 8, "is 8");

    is_status(ron_file_pread(fd, buf, 8, 0), RON_OK, "a read of all");
    is_mem(buf, "\0\0\0hello", 8, "is what was written");

    memset(buf, 'x', sizeof(buf));
    is_status(ron_file_pread(fd, buf, 6, 3), RON_ENOTFOUND,
              "a read over the end is none");
    is_mem(buf, "\0\0\0\0\0\0xx", 8, "and leaves zeros, no half");
    is_status(ron_file_pread(fd, buf, 0, 50), RON_OK, "a read of nothing");
    is_status(ron_file_pread(fd, buf, 1, UINT64_MAX), RON_EIO,
              "a read beyond all offsets");

    is_status(ron_file_sync(fd), RON_OK, "sync");
    is_status(ron_file_truncate(fd, 4), RON_OK, "cut");
    is_status(ron_file_size(fd, &size), RON_OK, "a size");
    is_u64(size, 4, "is 4");
    ron_file_close(fd);

    is_status(ron_file_pwrite(fd, "x", 1, 0), RON_EIO, "a closed descriptor");
    is_i64(ron_port_errno(), EBADF, "bad descriptor");
    is_status(ron_file_sync(fd), RON_EIO, "does not sync");
    is_status(ron_file_size(fd, &size), RON_EIO, "has no size");
    is_status(ron_file_truncate(fd, 0), RON_EIO, "is not cut");
    ron_file_close(RON_FD_NONE);

    is_status(ron_file_open(path("a"), RON_OPEN_READ, &fd), RON_OK,
              "reading only");
    is_status(ron_file_pwrite(fd, "x", 1, 0), RON_EIO, "is not writing");
    ron_file_close(fd);

    is_status(ron_file_open(path("a"), RON_OPEN_READ | RON_OPEN_DIR, &fd),
              RON_EIO, "a file is no directory");
}


static void
test_file_names(void)
{
    ron_fd_t  fd;

    is_status(ron_file_rename(path("a"), path("b")), RON_OK, "rename");
    is_status(ron_file_rename(path("a"), path("b")), RON_ENOTFOUND,
              "the old name is gone");
    is_status(ron_file_open(path("b"), RON_OPEN_READ, &fd), RON_OK,
              "the new one is there");
    ron_file_close(fd);

    is_status(ron_dir_sync(dir), RON_OK, "sync of a directory");
    is_status(ron_dir_sync(path("none")), RON_ENOTFOUND, "of none");
    is_status(ron_dir_sync(path("b")), RON_EIO, "of a file");

    is_status(ron_file_unlink(path("b")), RON_OK, "unlink");
    is_status(ron_file_unlink(path("b")), RON_ENOTFOUND, "not twice");

    is_status(ron_dir_make(path("d")), RON_OK, "a directory");
    is_status(ron_dir_make(path("d")), RON_OK, "may be there");
    is_status(ron_dir_make(path("none/d")), RON_ENOTFOUND, "has a parent");

    is_status(ron_file_open(path("f"), RON_OPEN_WRITE | RON_OPEN_CREATE, &fd),
              RON_OK, "a file");
    ron_file_close(fd);
    is_status(ron_dir_make(path("f")), RON_EIO, "is not taken for one");
}


static void
test_dir_mode(void)
{
    struct stat  st;

    ok(stat(path("d"), &st) == 0 && (st.st_mode & 07777) == 0700,
       "a directory is for its owner");
}


/*
 * A full disk three ways: the device that is always full, a file size limit
 * that lets a part of the write through, and an offset no file can have.
 */

static void
test_file_full(void)
{
    char           data[8192];
    ron_fd_t       fd;
    struct rlimit  old, lim;

    memset(data, 'z', sizeof(data));

    if (ron_file_open("/dev/full", RON_OPEN_WRITE, &fd) == RON_OK) {
        is_status(ron_file_pwrite(fd, "x", 1, 0), RON_EFULL, "no space");
        is_i64(ron_port_errno(), ENOSPC, "is ENOSPC");
        ron_file_close(fd);

    } else {
        skip("there is no /dev/full");
    }

    is_status(ron_file_open(path("f"), RON_OPEN_WRITE, &fd), RON_OK, "open");

    (void) getrlimit(RLIMIT_FSIZE, &old);
    lim = old;
    lim.rlim_cur = 4096;
    (void) signal(SIGXFSZ, SIG_IGN);
    (void) setrlimit(RLIMIT_FSIZE, &lim);

    is_status(ron_file_pwrite(fd, data, sizeof(data), 0), RON_EFULL,
              "a write that fits by half");
    is_i64(ron_port_errno(), EFBIG, "is EFBIG");
    is_status(ron_file_truncate(fd, 5000), RON_EFULL, "growing too");

    (void) setrlimit(RLIMIT_FSIZE, &old);

    is_status(ron_file_pwrite(fd, data, sizeof(data), 0), RON_OK,
              "with room again all of it");
    is_status(ron_file_pwrite(fd, data, 1, UINT64_MAX), RON_EFULL,
              "no file has this offset");
    is_status(ron_file_truncate(fd, UINT64_MAX), RON_EFULL, "nor this size");
    ron_file_close(fd);
}


static ron_status_t
count_name(void *ctx, const char *name)
{
    unsigned  *seen = ctx;

    *seen |= strcmp(name, "d") == 0 ? 1 : strcmp(name, "f") == 0 ? 2 : 4;

    return RON_OK;
}


static ron_status_t
stop_at_first(void *ctx, const char *name)
{
    unsigned  *n = ctx;

    (void) name;
    (*n)++;

    return RON_ECANCELED;
}


static void
test_dir_each(void)
{
    unsigned  n;

    n = 0;
    is_status(ron_dir_each(dir, count_name, &n), RON_OK, "names");
    is_u64(n, 3, "all of them and neither . nor ..");

    n = 0;
    is_status(ron_dir_each(dir, stop_at_first, &n), RON_ECANCELED,
              "the callback's refusal comes back");
    is_u64(n, 1, "and ends the walk");

    n = 0;
    is_status(ron_dir_each(path("none"), count_name, &n), RON_ENOTFOUND,
              "no directory");
    is_status(ron_dir_each(path("f"), count_name, &n), RON_EIO, "a file");
    is_u64(n, 0, "call nobody");
}


/* With stdin closed, the first file must not become descriptor 0. */

static void
test_stdio(void)
{
    int       state, fds;
    pid_t     pid;
    ron_fd_t  fd;

    pid = fork();
    if (pid == 0) {
        (void) close(0);
        (void) close(2);

        if (ron_file_open(path("f"), RON_OPEN_WRITE, &fd) != RON_OK) {
            _exit(1);
        }

        fds = fcntl(0, F_GETFD) == -1 && fcntl(2, F_GETFD) == -1
              && (fcntl(fd, F_GETFD) & FD_CLOEXEC) && fd > 2;
        _exit(fds ? 0 : 2);
    }

    (void) waitpid(pid, &state, 0);
    ok(WIFEXITED(state) && WEXITSTATUS(state) == 0,
       "a file never becomes stdin or stderr");
}


/* ---- ron_port.h: locks -------------------------------------------------- */


/* What another process gets when it asks for the lock. */

static ron_status_t
lock_elsewhere(const char *name, unsigned flags)
{
    int       state;
    pid_t     pid;
    ron_fd_t  fd;

    pid = fork();
    if (pid == 0) {
        if (ron_file_open(name, flags, &fd) != RON_OK) {
            _exit(99);
        }

        _exit((int) ron_file_lock(fd));
    }

    (void) waitpid(pid, &state, 0);

    return WIFEXITED(state) ? (ron_status_t) WEXITSTATUS(state)
                            : RON_STATUS_N;
}


static void
test_lock(const char *name, unsigned flags)
{
    ron_fd_t  fd, fd2;

    is_status(ron_file_open(name, flags, &fd), RON_OK, "open for lock");
    is_status(ron_file_open(name, flags, &fd2), RON_OK, "and again");
    is_status(ron_file_lock(fd), RON_OK, "lock");
    is_status(ron_file_lock(fd), RON_OK, "the holder may ask again");
    is_status(ron_file_lock(fd2), RON_EFENCED, "not the same process");
    is_status(lock_elsewhere(name, flags), RON_EFENCED, "nor another");

    ron_file_close(fd2);
    is_status(lock_elsewhere(name, flags), RON_EFENCED,
              "closing another descriptor does not drop it");

    ron_file_close(fd);
    is_status(lock_elsewhere(name, flags), RON_OK, "closing its own does");
    is_status(ron_file_lock(fd), RON_EIO, "a closed descriptor is no lock");
}


static void
test_lock_death(void)
{
    int           state, fds[2];
    char          byte;
    pid_t         pid;
    ron_fd_t      fd;

    if (!ok(pipe(fds) == 0, "pipe")) {
        return;
    }

    pid = fork();
    if (pid == 0) {
        if (ron_file_open(path("f"), RON_OPEN_WRITE, &fd) == RON_OK
            && ron_file_lock(fd) == RON_OK && write(fds[1], "x", 1) == 1)
        {
            (void) pause();
        }

        _exit(1);
    }

    (void) close(fds[1]);
    ok(read(fds[0], &byte, 1) == 1, "another process holds the lock");
    is_status(lock_elsewhere(path("f"), RON_OPEN_WRITE), RON_EFENCED,
              "it is held");

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, &state, 0);
    (void) close(fds[0]);

    is_status(lock_elsewhere(path("f"), RON_OPEN_WRITE), RON_OK,
              "a killed process holds no lock");
}


/* ---- ron_port.h: threads ------------------------------------------------ */


typedef struct {
    ron_mutex_t  *mutex;
    ron_cond_t   *cond;
    uint64_t      sum;
    int           waiting;
    bool          go;
    bool          blocked;
    int           policy;
    char          name[16];
} shared_t;


static void
thread_look(void *arg)
{
    int       sig, missing;
    shared_t  *sh = arg;
    sigset_t  set;

    missing = 0;
    (void) pthread_sigmask(SIG_SETMASK, NULL, &set);

    for (sig = 1; sig < 32; sig++) {
        missing += sig != SIGKILL && sig != SIGSTOP && !sigismember(&set, sig);
    }

    sh->blocked = missing == 0;
    sh->policy = sched_getscheduler(0);     /* the kernel's, of this thread */
    (void) pthread_getname_np(pthread_self(), sh->name, sizeof(sh->name));
}


/* A slice of the calling thread in ns, as the kernel says. */

static uint64_t
slice(void)
{
    uint64_t  attr[6];

    memset(attr, 0, sizeof(attr));
    RON_ASSERT(syscall(SYS_sched_getattr, 0, attr, sizeof(attr), 0) == 0);

    return attr[3];
}


static void
thread_slice(void *arg)
{
    *(uint64_t *) arg = slice();
}


/* Its own, and that of one that it starts. */

static void
thread_slices(void *arg)
{
    uint64_t      *slices = arg;
    ron_thread_t  *thread;

    slices[0] = slice();
    RON_ASSERT(ron_thread_start(&thread, "ron-def", RON_THREAD_USUAL,
                                thread_slice, &slices[1]) == RON_OK
               && ron_thread_join(thread, 5000) == RON_OK);
}


static void
test_prompt(void)
{
    unsigned        major, minor;
    uint64_t        mine, its[2];
    ron_thread_t   *thread;
    struct utsname  kernel;

    RON_ASSERT(uname(&kernel) == 0
               && sscanf(kernel.release, "%u.%u", &major, &minor) == 2);
    mine = slice();
    is_status(ron_thread_start(&thread, "ron-abc", RON_THREAD_PROMPT,
                               thread_slices, its),
              RON_OK, "a prompt thread starts");
    is_status(ron_thread_join(thread, 5000), RON_OK, "and ends");

    if (major * 100 + minor >= 612) {
        is_u64(its[0], 100000, "its slice is short");
        is_u64(its[1], mine, "and a usual one's is not, whoever starts it");

    } else {
        ok(its[0] == mine && its[1] == mine, "this kernel knows no slices");
    }
}


static void
test_thread(void)
{
    shared_t       sh;
    sigset_t       set;
    ron_thread_t  *thread;

    struct sched_param  param;

    memset(&sh, 0, sizeof(sh));
    is_status(ron_thread_start(&thread, "ron-abc", RON_THREAD_USUAL,
                               thread_look, &sh),
              RON_OK, "a thread starts");
    is_status(ron_thread_join(thread, 5000), RON_OK, "and ends");
    ok(sh.blocked, "all signals are blocked in it");
    is_str(sh.name, "ron-abc", "it has its name");
    is_i64(sh.policy, SCHED_OTHER, "and the usual policy");

    (void) pthread_sigmask(SIG_SETMASK, NULL, &set);
    ok(!sigismember(&set, SIGTERM), "and none in its starter");

    is_status(ron_thread_start(&thread, "a name that is too long",
                               RON_THREAD_IDLE, thread_look, &sh),
              RON_OK, "an idle thread starts");
    is_status(ron_thread_join(thread, 5000), RON_OK, "and ends");
    is_str(sh.name, "a name that is ", "a long name is cut");
    is_i64(sh.policy, SCHED_IDLE, "idle is SCHED_IDLE");

    memset(&param, 0, sizeof(param));
    RON_ASSERT(pthread_setschedparam(pthread_self(), SCHED_BATCH, &param) == 0);
    is_status(ron_thread_start(&thread, "ron-abc", RON_THREAD_PROMPT,
                               thread_look, &sh),
              RON_OK, "one whose starter has another policy");
    is_status(ron_thread_join(thread, 5000), RON_OK, "ends");
    is_i64(sh.policy, SCHED_BATCH, "it has that one too");
    is_status(ron_thread_start(&thread, "ron-abc", RON_THREAD_IDLE,
                               thread_look, &sh),
              RON_OK, "an idle one");
    is_status(ron_thread_join(thread, 5000), RON_OK, "ends");
    is_i64(sh.policy, SCHED_IDLE, "it is idle all the same");
    RON_ASSERT(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param) == 0);
}


static void
thread_wait(void *arg)
{
    shared_t  *sh = arg;

    struct sched_param  param;

    ron_mutex_lock(sh->mutex);
    sh->waiting++;

    while (!sh->go) {
        (void) ron_cond_wait(sh->cond, sh->mutex, 10000000);
    }

    sh->waiting--;
    (void) pthread_getschedparam(pthread_self(), &sh->policy, &param);
    ron_mutex_unlock(sh->mutex);
}


static void
wait_for(shared_t *sh, int waiting)
{
    for ( ;; ) {
        ron_mutex_lock(sh->mutex);

        if (sh->waiting == waiting) {
            ron_mutex_unlock(sh->mutex);
            return;
        }

        ron_mutex_unlock(sh->mutex);
        ron_sleep_us(1000);
    }
}


static void
test_join_timeout(void)
{
    uint64_t       start, took;
    shared_t       sh;
    ron_thread_t  *thread;

    memset(&sh, 0, sizeof(sh));
    is_status(ron_mutex_create(&sh.mutex, RON_LOCK_ENGINE), RON_OK, "a mutex");
    is_status(ron_cond_create(&sh.cond), RON_OK, "a condition");
    is_status(ron_thread_start(&thread, "ron-wait", RON_THREAD_IDLE,
                               thread_wait, &sh),
              RON_OK, "an idle thread that waits");
    wait_for(&sh, 1);

    is_status(ron_thread_join(thread, 0), RON_AGAIN, "is not there at once");

    start = ron_clock_mono_us();
    is_status(ron_thread_join(thread, 30), RON_AGAIN, "nor after 30 ms");
    took = ron_clock_mono_us() - start;
    ok(took >= 30000 && took < 5000000, "which were 30 ms: %" PRIu64 " us",
       took);

    ron_thread_hurry(thread);

    ron_mutex_lock(sh.mutex);
    sh.go = true;
    ron_cond_signal(sh.cond);
    ron_mutex_unlock(sh.mutex);

    is_status(ron_thread_join(thread, 5000), RON_OK, "woken, it ends");
    is_i64(sh.policy, SCHED_OTHER, "no longer idle, since it was hurried");
    is_i64(sh.waiting, 0, "having done its work");

    ron_cond_destroy(sh.cond);
    ron_mutex_destroy(sh.mutex);
}


static void
test_cond_timeout(void)
{
    uint64_t      start, took;
    ron_cond_t   *cond;
    ron_mutex_t  *mutex;
    ron_status_t  status;

    (void) ron_mutex_create(&mutex, RON_LOCK_ENGINE);
    (void) ron_cond_create(&cond);

    ron_mutex_lock(mutex);
    start = ron_clock_mono_us();

    do {
        status = ron_cond_wait(cond, mutex, 20000);
        took = ron_clock_mono_us() - start;
    } while (status == RON_OK && took < 20000);

    is_status(status, RON_AGAIN, "a wait that nobody ends times out");
    ok(took >= 20000 && took < 5000000, "after its 20 ms: %" PRIu64 " us",
       took);
    is_status(ron_cond_wait(cond, mutex, 0), RON_AGAIN, "at once, for 0");
    ron_mutex_unlock(mutex);

    ron_cond_destroy(cond);
    ron_mutex_destroy(mutex);
}


static void
thread_forever(void *arg)
{
    shared_t  *sh = arg;

    ron_mutex_lock(sh->mutex);
    sh->waiting++;

    while (!sh->go) {
        if (ron_cond_wait(sh->cond, sh->mutex, UINT64_MAX) != RON_OK) {
            sh->sum = 1;
            break;
        }
    }

    ron_mutex_unlock(sh->mutex);
}


static void
test_broadcast(void)
{
    int            i, joined;
    shared_t       sh;
    ron_thread_t  *threads[5];

    memset(&sh, 0, sizeof(sh));
    (void) ron_mutex_create(&sh.mutex, RON_LOCK_ENGINE);
    (void) ron_cond_create(&sh.cond);

    for (i = 0; i < 5; i++) {
        (void) ron_thread_start(&threads[i], "ron-many",
                                i & 1 ? RON_THREAD_IDLE : RON_THREAD_USUAL,
                                thread_forever, &sh);
    }

    wait_for(&sh, 5);

    ron_mutex_lock(sh.mutex);
    sh.go = true;
    ron_cond_broadcast(sh.cond);
    ron_mutex_unlock(sh.mutex);

    for (i = 0, joined = 0; i < 5; i++) {
        joined += ron_thread_join(threads[i], 10000) == RON_OK;
    }

    is_u64(joined, 5, "a broadcast wakes all");
    is_u64(sh.sum, 0, "and a wait of UINT64_MAX is no short one");

    ron_cond_destroy(sh.cond);
    ron_mutex_destroy(sh.mutex);
}


static void
thread_add(void *arg)
{
    int        i;
    shared_t  *sh = arg;

    for (i = 0; i < 50000; i++) {
        ron_mutex_lock(sh->mutex);
        sh->sum++;
        ron_mutex_unlock(sh->mutex);
    }
}


static void
test_mutex(void)
{
    int            i, state;
    pid_t          pid;
    shared_t       sh;
    ron_thread_t  *threads[4];

    memset(&sh, 0, sizeof(sh));
    (void) ron_mutex_create(&sh.mutex, RON_LOCK_ENGINE);

    for (i = 0; i < 4; i++) {
        (void) ron_thread_start(&threads[i], "ron-add", RON_THREAD_USUAL,
                                thread_add, &sh);
    }

    for (i = 0; i < 4; i++) {
        while (ron_thread_join(threads[i], 1000) != RON_OK) { /* void */ }
    }

    is_u64(sh.sum, 200000, "four threads count without loss");

    pid = fork();
    if (pid == 0) {
        (void) !freopen("/dev/null", "w", stderr);
        ron_mutex_lock(sh.mutex);
        ron_mutex_lock(sh.mutex);
        _exit(0);
    }

    (void) waitpid(pid, &state, 0);
    ok(WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT,
       "a mutex taken twice is an assertion");

    ron_mutex_destroy(sh.mutex);
}


int
main(void)
{
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }

    test_str();
    test_log();
    test_status();
    test_assert();

    test_buf_growth();
    test_buf_max();
    test_siphash();

    test_buf_no_memory();
    test_buf_printf();
    test_buf_bytes();
    test_integers();
    test_varint_form();
    test_reader();

    test_clock();
    test_file();
    test_file_names();
    test_dir_mode();
    test_file_full();
    test_dir_each();
    test_stdio();
    test_lock(path("f"), RON_OPEN_WRITE);
    test_lock(dir, RON_OPEN_READ | RON_OPEN_DIR);
    test_lock_death();

    test_thread();
    test_prompt();
    test_join_timeout();
    test_cond_timeout();
    test_broadcast();
    test_mutex();

    (void) rmdir(path("d"));
    (void) unlink(path("f"));
    ok(rmdir(dir) == 0, "nothing else was left");

    return done_testing();
}
