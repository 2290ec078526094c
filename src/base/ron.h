
/*
 * libron: the vocabulary that every other file shares.
 *
 * libron is the ledger as a plain C11 library.  It knows no server: clock,
 * files and threads come from ron_port.h, so that a simulator can own them,
 * and everything else is computation.
 *
 * Conventions, everywhere in src/:
 *
 *   - every function that can fail returns ron_status_t; results go through
 *     out-parameters, which are zeroed on failure;
 *   - a state that a correct program can never reach is reported through
 *     ron_corrupt(), one place to set a breakpoint on;
 *   - a size, count or time carries its unit in its name: _len (bytes),
 *     _n (items), _ms, _us, _minor;
 *   - RON_ASSERT() stays on in production: a ledger that has lost its
 *     invariants must stop, not go on.
 */

#ifndef RON_H
#define RON_H


/* Older compilers are not tested, and their warnings are others. */

#if defined(__clang__)
#if (__clang_major__ < 14)
#error "libron needs gcc 12 or clang 14, or newer"
#endif
#elif defined(__GNUC__)
#if (__GNUC__ < 12)
#error "libron needs gcc 12 or clang 14, or newer"
#endif
#else
#error "libron needs gcc 12 or clang 14, or newer"
#endif


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>


typedef enum {
    RON_OK = 0,
    RON_AGAIN,              /* no room or nothing there yet, ask again */
    RON_ENOMEM,
    RON_EINVAL,             /* the caller's data is malformed */
    RON_ERANGE,             /* a number does not fit */
    RON_ENOTFOUND,
    RON_EEXIST,
    RON_EFULL,              /* a bound was reached: disk, region, table */
    RON_EIO,                /* the operating system said no */
    RON_ECORRUPT,           /* stored bytes are not what was written */
    RON_EFENCED,            /* another writer owns the journal */
    RON_EVERSION,           /* a format newer than this program */
    RON_ECANCELED,
    RON_STATUS_N
} ron_status_t;


typedef struct {
    size_t          len;
    const uint8_t  *data;
} ron_str_t;


__extension__ typedef unsigned __int128  ron_u128_t;


#define RON_HASH_LEN  32

typedef struct {
    uint8_t  b[RON_HASH_LEN];
} ron_hash_t;


#define ron_str(literal)                                                      \
    ((ron_str_t) { sizeof(literal) - 1, (const uint8_t *) (literal) })
#define ron_null_str  ((ron_str_t) { 0, NULL })

#define ron_array_n(a)  (sizeof(a) / sizeof((a)[0]))
#define ron_min(a, b)   ((a) < (b) ? (a) : (b))
#define ron_max(a, b)   ((a) > (b) ? (a) : (b))


/* Prints the expression and its place to stderr, then aborts. */
_Noreturn void ron_assert_failed(const char *expr, const char *file,
    int line);

#define RON_ASSERT(expr)                                                      \
    ((expr) ? (void) 0 : ron_assert_failed(#expr, __FILE__, __LINE__))


/*
 * Every place that finds stored bytes wrong returns ron_corrupt(), so that
 * one breakpoint, or one counter, sees them all.  Returns RON_ECORRUPT.
 */
ron_status_t ron_corrupt_at(const char *file, int line);

/* The constant is for readers and analysers, who need not look it up. */
#define ron_corrupt()                                                         \
    ((void) ron_corrupt_at(__FILE__, __LINE__), RON_ECORRUPT)

uint64_t ron_corrupt_count(void);

/* A short lower-case phrase for a status: "corrupt", "no memory". */
const char *ron_status_name(ron_status_t status);


static inline bool
ron_str_eq(ron_str_t a, ron_str_t b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Byte order, then length: the order of memcmp() with a short string first. */
int ron_str_cmp(ron_str_t a, ron_str_t b);

/* The bytes of a C string, without its terminator. */
ron_str_t ron_cstr(const char *s);


static inline bool
ron_hash_eq(const ron_hash_t *a, const ron_hash_t *b)
{
    return memcmp(a->b, b->b, RON_HASH_LEN) == 0;
}


#endif /* RON_H */
