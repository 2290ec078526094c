
/*
 * Log lines of libron.  The embedder installs a sink; without one, warnings
 * and errors go to stderr.  A line is a lower-case fragment without a newline,
 * says what happened once per change of state, and never carries a token, a
 * key or an account.
 */

#ifndef RON_LOG_H
#define RON_LOG_H


#include "ron.h"


typedef enum {
    RON_LOG_ALERT = 0,      /* our bug */
    RON_LOG_ERROR,          /* an operator must act */
    RON_LOG_WARN,
    RON_LOG_INFO,
    RON_LOG_DEBUG
} ron_log_level_t;


typedef void (*ron_log_pt)(void *ctx, ron_log_level_t level, const char *line);


void ron_log_set(ron_log_pt sink, void *ctx, ron_log_level_t max_level);
void ron_log(ron_log_level_t level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


#endif /* RON_LOG_H */
