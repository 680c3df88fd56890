/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - what is traced, and the lock of the profile, the timeline and the metrics. */
#include "lib/trace/trace.h"
#include "lib/trace/log.h"
#include "lib/trace/metrics.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

atomic_int coll__trace_flags;

static void forget(void);

static struct coll__lock lock = COLL__LOCK(forget);
static int is_open; /* under the lock: the environment was read */

/* A child traces nothing: its files are its parent's. */
static void forget(void)
{
    atomic_store_explicit(&coll__trace_flags, 0, memory_order_relaxed);
}

static void add_flag(int flag)
{
    atomic_fetch_or_explicit(&coll__trace_flags, flag, memory_order_relaxed);
}

static int has(int flag)
{
    return atomic_load_explicit(&coll__trace_flags, memory_order_relaxed) &
           flag;
}

/* Stop this kind of trace, since writing its file failed.  Locked. */
static void stop(int flag, const char *name, int err)
{
    atomic_fetch_and_explicit(&coll__trace_flags, ~flag, memory_order_relaxed);
    log_warn("trace",
             "the file of %s ends here: %s; free some disk space, or name "
             "another file",
             name, strerror(err));
}

/* ---- opening ---------------------------------------------------------------- */

static int cannot_open(const char *name, const char *path, int err)
{
    log_error("trace", "%s: cannot write %s: %s; name another file", name, path,
              strerror(err));
    return COLL_ERR_INVALID;
}

/* Open NAME.RANK: NAME is COLL_PROFILE's value, or coll_profile if that is 1. */
static int open_profile(int rank, int n_ranks)
{
    const char *prefix = coll__param_text(PARAM_PROFILE);
    char path[PATH_MAX];

    if (!*prefix || !strcmp(prefix, "0"))
        return COLL_OK;
    if (!strcmp(prefix, "1"))
        prefix = "coll_profile";
    snprintf(path, sizeof(path), "%s.%d", prefix, rank);
    if (coll__profile_open(path, rank, n_ranks))
        return cannot_open("COLL_PROFILE", path, errno);
    add_flag(TRACE_PROFILE);
    return COLL_OK;
}

int coll__trace_path(const char *text, int rank, char *path)
{
    const char *mark = strstr(text, "%r");

    if (mark)
        snprintf(path, PATH_MAX, "%.*s%d%s", (int)(mark - text), text, rank,
                 mark + 2);
    else
        snprintf(path, PATH_MAX, "%s", text);
    return mark != NULL;
}

/* Only rank 0 writes a timeline, as in Horovod, unless each rank has its own file. */
static int open_timeline(int rank)
{
    int is_ours = coll__param_is_set(PARAM_TIMELINE);
    const char *name = is_ours ? "COLL_TIMELINE" : "HOROVOD_TIMELINE";
    const char *text = getenv(name);
    char path[PATH_MAX];

    if (!text || !*text || (!coll__trace_path(text, rank, path) && rank))
        return COLL_OK;
    if (coll__timeline_open(path))
        return cannot_open(name, path, errno);
    add_flag(TRACE_TIMELINE);
    return COLL_OK;
}

static int open_metrics(int rank)
{
    int rc;

    if (!coll__param_is_set(PARAM_METRICS))
        return COLL_OK;
    rc = coll__metrics_open(rank);
    if (rc == COLL_OK)
        add_flag(TRACE_METRICS);
    return rc;
}

static void write_at_exit(void)
{
    coll__trace_write();
    coll__metrics_write();
}

int coll__trace_open(int rank, int n_ranks)
{
    int rc = COLL_OK;

    coll__lock(&lock);
    if (!is_open) {
        is_open = 1;
        rc = open_profile(rank, n_ranks);
        if (rc == COLL_OK)
            rc = open_timeline(rank);
        if (rc == COLL_OK)
            rc = open_metrics(rank);
        if (has(TRACE_PROFILE | TRACE_METRICS))
            atexit(write_at_exit);
        is_open = rc == COLL_OK;
    }
    coll__unlock(&lock);
    return rc;
}

void coll__trace_times(void) { add_flag(TRACE_TIMES); }

/* ---- noting ----------------------------------------------------------------- */

void coll__trace_note(const struct coll__traced *op)
{
    if (!has(TRACE_PROFILE | TRACE_TIMELINE | TRACE_METRICS))
        return;
    coll__lock(&lock);
    if (has(TRACE_PROFILE))
        coll__profile_note(op);
    if (has(TRACE_METRICS))
        coll__metrics_note(op);
    if (has(TRACE_TIMELINE) && coll__timeline_note(op))
        stop(TRACE_TIMELINE, "COLL_TIMELINE", errno);
    coll__unlock(&lock);
}

void coll__trace_waited(int metrics, enum coll_collective collective,
                        double seconds)
{
    if (!has(TRACE_PROFILE | TRACE_METRICS))
        return;
    coll__lock(&lock);
    if (has(TRACE_PROFILE))
        coll__profile_waited(seconds);
    if (has(TRACE_METRICS))
        coll__metrics_waited(metrics, collective, seconds);
    coll__unlock(&lock);
}

void coll__trace_late(int metrics, double seconds, uint64_t n)
{
    coll__lock(&lock);
    if (has(TRACE_PROFILE))
        coll__profile_late(seconds, n);
    if (has(TRACE_METRICS))
        coll__metrics_late(metrics, seconds / (double)n);
    coll__unlock(&lock);
}

void coll__trace_write(void)
{
    coll__lock(&lock);
    if (has(TRACE_PROFILE) && coll__profile_write())
        stop(TRACE_PROFILE, "COLL_PROFILE", errno);
    coll__unlock(&lock);
}

/* ---- metrics ------------------------------------------------------------------ */

int coll__metrics_is_on(void) { return has(TRACE_METRICS) != 0; }

int coll__metrics_add(const char *id, int size)
{
    int number = 0;

    coll__lock(&lock);
    if (has(TRACE_METRICS))
        number = coll__metrics_number(id, size);
    coll__unlock(&lock);
    return number;
}

/* The counters are copied, so that no operation waits while the file is written. */
void coll__metrics_write(void)
{
    struct coll__metrics *copy = NULL;

    coll__lock(&lock);
    if (has(TRACE_METRICS))
        copy = coll__metrics_copy();
    coll__unlock(&lock);
    if (copy && !coll__metrics_put(copy)) /* it has said why */
        atomic_fetch_and_explicit(&coll__trace_flags, ~TRACE_METRICS,
                                  memory_order_relaxed);
}

/* ---- the caller's own rows --------------------------------------------------- */

double coll_timeline_begin(void)
{
    return has(TRACE_TIMELINE) ? coll__now() : 0;
}

void coll_timeline_end(const char *row, const char *what, double begin)
{
    if (begin && has(TRACE_TIMELINE))
        coll_timeline_add(row, what, begin, coll__now());
}

void coll_timeline_add(const char *row, const char *what, double begin,
                       double end)
{
    if (!has(TRACE_TIMELINE) || !row || !what || !(begin <= end))
        return;
    coll__lock(&lock);
    if (has(TRACE_TIMELINE) && coll__timeline_span(row, what, begin, end))
        stop(TRACE_TIMELINE, "COLL_TIMELINE", errno);
    coll__unlock(&lock);
}
