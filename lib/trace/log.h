/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - what the library says, and this thread's last error.
 *
 * log_error() always records its sentence for coll_last_error(), and prints it
 * when COLL_LOG is set; the function that first knows the cause calls it, the
 * others pass the status on.  A line reads "coll 3/8 topo: text".
 */
#ifndef COLL_LIB_TRACE_LOG_H
#define COLL_LIB_TRACE_LOG_H

#include "include/coll/coll.h"

#define log_at(level, part, ...)                       \
    do {                                               \
        if (coll__log_wants(level, part))              \
            coll__log_write(level, part, __VA_ARGS__); \
    } while (0)

#define log_warn(part, ...) log_at(COLL_LOG_WARN, part, __VA_ARGS__)
#define log_info(part, ...) log_at(COLL_LOG_INFO, part, __VA_ARGS__)
#define log_debug(part, ...) log_at(COLL_LOG_DEBUG, part, __VA_ARGS__)
#define log_trace(part, ...) log_at(COLL_LOG_TRACE, part, __VA_ARGS__)

/* Say whether a line of this level and part would be printed. */
int coll__log_wants(enum coll_log_level level, const char *part);

/* Print a line, whatever COLL_LOG says. */
void coll__log_write(enum coll_log_level level, const char *part,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Record the sentence as this thread's last error, and print it if asked. */
void log_error(const char *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Tell the log who speaks, for the "3/8" of its lines. */
void coll__log_set_rank(int rank, int size);

#endif
