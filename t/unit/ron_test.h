
/*
 * TAP for the C unit tests.  One test is one program is one file; all state
 * is in that file, so nothing here is safe from two threads.
 *
 *     int
 *     main(void)
 *     {
 *         ok(1 + 1 == 2, "addition of %d and %d", 1, 1);
 *         return done_testing();
 *     }
 *
 * Every macro returns whether the test passed.  A test that aborts half-way
 * prints no plan, and that fails it.
 */

#ifndef RON_TEST_H
#define RON_TEST_H


#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ron.h"


static unsigned  ron_test_n;
static unsigned  ron_test_failed;


#define ok(cond, ...)                                                         \
    ron_test_ok((cond) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)

#define is_u64(got, want, ...)                                                \
    ron_test_u64((uint64_t) (got), (uint64_t) (want), __FILE__, __LINE__,     \
                 __VA_ARGS__)

#define is_i64(got, want, ...)                                                \
    ron_test_i64((int64_t) (got), (int64_t) (want), __FILE__, __LINE__,       \
                 __VA_ARGS__)

/* A ron_status_t: a failure names both. */
#define is_status(got, want, ...)                                             \
    ron_test_status((got), (want), __FILE__, __LINE__, __VA_ARGS__)

/* C strings; NULL equals only NULL. */
#define is_str(got, want, ...)                                                \
    ron_test_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)

#define is_mem(got, want, len, ...)                                           \
    ron_test_mem((got), (want), (len), __FILE__, __LINE__, __VA_ARGS__)

#define pass(...)  ok(1, __VA_ARGS__)
#define fail(...)  ok(0, __VA_ARGS__)

#define diag(...)                                                             \
    (fputs("# ", stderr), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))

/* One passed test that says why it could not be made. */
#define skip(...)  ron_test_skip(__VA_ARGS__)

/* Prints the plan; the exit code of main(). */
#define done_testing()  ron_test_done()


__attribute__((unused, format(printf, 2, 0)))
static void
ron_test_line(int passed, const char *fmt, va_list args)
{
    ron_test_n++;
    ron_test_failed += !passed;

    printf("%s %u - ", passed ? "ok" : "not ok", ron_test_n);
    vprintf(fmt, args);
    printf("\n");
    fflush(stdout);
}


__attribute__((unused, format(printf, 4, 5)))
static int
ron_test_ok(int passed, const char *file, int line, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    ron_test_line(passed, fmt, args);
    va_end(args);

    if (!passed) {
        diag("  failed at %s line %d", file, line);
    }

    return passed;
}


__attribute__((unused, format(printf, 5, 6)))
static int
ron_test_u64(uint64_t got, uint64_t want, const char *file, int line,
    const char *fmt, ...)
{
    int      passed;
    va_list  args;

    passed = got == want;

    va_start(args, fmt);
    ron_test_line(passed, fmt, args);
    va_end(args);

    if (!passed) {
        diag("  failed at %s line %d: got %" PRIu64 " (0x%" PRIx64
             "), want %" PRIu64 " (0x%" PRIx64 ")",
             file, line, got, got, want, want);
    }

    return passed;
}


__attribute__((unused, format(printf, 5, 6)))
static int
ron_test_i64(int64_t got, int64_t want, const char *file, int line,
    const char *fmt, ...)
{
    int      passed;
    va_list  args;

    passed = got == want;

    va_start(args, fmt);
    ron_test_line(passed, fmt, args);
    va_end(args);

    if (!passed) {
        diag("  failed at %s line %d: got %" PRId64 ", want %" PRId64,
             file, line, got, want);
    }

    return passed;
}


__attribute__((unused, format(printf, 5, 6)))
static int
ron_test_status(ron_status_t got, ron_status_t want, const char *file,
    int line, const char *fmt, ...)
{
    int      passed;
    va_list  args;

    passed = got == want;

    va_start(args, fmt);
    ron_test_line(passed, fmt, args);
    va_end(args);

    if (!passed) {
        diag("  failed at %s line %d: got \"%s\", want \"%s\"", file, line,
             ron_status_name(got), ron_status_name(want));
    }

    return passed;
}


__attribute__((unused, format(printf, 5, 6)))
static int
ron_test_str(const char *got, const char *want, const char *file, int line,
    const char *fmt, ...)
{
    int      passed;
    va_list  args;

    passed = got == want
             || (got != NULL && want != NULL && strcmp(got, want) == 0);

    va_start(args, fmt);
    ron_test_line(passed, fmt, args);
    va_end(args);

    if (!passed) {
        diag("  failed at %s line %d:", file, line);
        diag("     got %s", got ? got : "(null)");
        diag("    want %s", want ? want : "(null)");
    }

    return passed;
}


__attribute__((unused, format(printf, 6, 7)))
static int
ron_test_mem(const void *got, const void *want, size_t len, const char *file,
    int line, const char *fmt, ...)
{
    int             passed;
    size_t          i;
    va_list         args;
    const uint8_t  *g, *w;

    passed = len == 0 || memcmp(got, want, len) == 0;

    va_start(args, fmt);
    ron_test_line(passed, fmt, args);
    va_end(args);

    if (passed) {
        return 1;
    }

    g = got;
    w = want;

    for (i = 0; g[i] == w[i]; i++) { /* void */ }

    diag("  failed at %s line %d: byte %zu of %zu is 0x%02x, want 0x%02x",
         file, line, i, len, g[i], w[i]);

    return 0;
}


__attribute__((unused, format(printf, 1, 2)))
static void
ron_test_skip(const char *fmt, ...)
{
    va_list  args;

    ron_test_n++;

    printf("ok %u # skip ", ron_test_n);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}


__attribute__((unused))
static int
ron_test_done(void)
{
    printf("1..%u\n", ron_test_n);
    fflush(stdout);

    if (ron_test_failed) {
        diag("%u of %u tests failed", ron_test_failed, ron_test_n);
        return 1;
    }

    return ron_test_n == 0;
}


#endif /* RON_TEST_H */
