/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - the library's log, and this thread's last error.
 *
 * log_error() always records its sentence for coll_last_error(), and prints it
 * when COLL_LOG is set; the function that first knows the cause calls it, the
 * others pass the status on.  A line reads "coll 3/8 topo: text".
 */
#ifndef COLL_LIB_TRACE_LOG_H
#define COLL_LIB_TRACE_LOG_H

#include "include/coll/coll.h"

#include <stdatomic.h>

#define COLL__LINE_MAX 1024 /* bytes of a line's text, with its NUL */
#define COLL__TEXT_MAX 512  /* bytes of a reason or an answer, with its NUL */

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

/* Check COLL_LOG.  Returns COLL_OK, or COLL_ERR_INVALID, logged. */
int coll__log_check(void);

/* Print a line, whatever COLL_LOG says. */
void coll__log_write(enum coll_log_level level, const char *part,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Record the sentence as this thread's last error, and print it if asked. */
void log_error(const char *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Record it without printing. */
void coll__log_set_error(const char *text);

/* Set this process's rank and size, for the "3/8" of its lines. */
void coll__log_set_rank(int rank, int size);

/* Return the size in the upper half and the rank in the lower one; 0: not set. */
uint64_t coll__log_speaker(void);

/* ---- log_queue.c ---------------------------------------------------------- */

/* Put a line into the queue; never waits.  Any thread, under any lock. */
void coll__log_enqueue(enum coll_log_level level, const char *part,
                       const char *text);

/* How many lines wait to be written. */
extern atomic_uint coll__log_n_waiting;

static inline int coll__log_is_waiting(void)
{
    return atomic_load_explicit(&coll__log_n_waiting, memory_order_relaxed) > 0;
}

/* Do lines wait for stderr? */
int coll__log_is_stuck(void);

/* Write lines to stderr as long as it takes them without waiting; do nothing if there is
 * a handler.  Any thread that holds no lock. */
void coll__log_flush(void);

/* Hand the waiting lines to the handler, if there is one, else write them to stderr.  The
 * calling thread is at a point where the handler may call any function of the library. */
void coll__log_deliver(void);

/* End a call of the library: deliver the waiting lines, and return the call's status. */
static inline int coll__log_done(int status)
{
    if (__builtin_expect(coll__log_is_waiting(), 0))
        coll__log_deliver();
    return status;
}

#endif
