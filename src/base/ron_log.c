
/*
 * The sink is installed before the first thread starts and stays, so reading
 * it takes no lock.  A line is built on the stack: logging allocates nothing
 * and works when memory is what ran out.
 */

#include "ron_log.h"
#include "ron_lock.h"

#include <stdarg.h>
#include <stdio.h>


#define RON_LOG_LINE_LEN  1024


static void ron_log_stderr(void *ctx, ron_log_level_t level, const char *line);


static ron_log_pt       ron_log_sink = ron_log_stderr;
static void            *ron_log_ctx;
static ron_log_level_t  ron_log_max_level = RON_LOG_WARN;


static const char *const  ron_log_levels[] = {
    [RON_LOG_ALERT] = "alert",
    [RON_LOG_ERROR] = "error",
    [RON_LOG_WARN]  = "warn",
    [RON_LOG_INFO]  = "info",
    [RON_LOG_DEBUG] = "debug",
};


void
ron_log_set(ron_log_pt sink, void *ctx, ron_log_level_t max_level)
{
    ron_log_sink = sink ? sink : ron_log_stderr;
    ron_log_ctx = ctx;
    ron_log_max_level = max_level;
}


void
ron_log(ron_log_level_t level, const char *fmt, ...)
{
    char      line[RON_LOG_LINE_LEN], *p;
    va_list   args;

    ron_lock_wait("a log line");

    if (level > ron_log_max_level) {
        return;
    }

    va_start(args, fmt);

    if (vsnprintf(line, sizeof(line), fmt, args) < 0) {
        line[0] = '\0';
    }

    va_end(args);

    /* One event is one line, whatever bytes a file name may hold. */

    for (p = line; *p; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            *p = '?';
        }
    }

    ron_log_sink(ron_log_ctx, level, line);
}


static void
ron_log_stderr(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;

    fprintf(stderr, "ron: [%s] %s\n", ron_log_levels[level], line);
}
