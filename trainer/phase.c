/* SPDX-License-Identifier: BSD-3-Clause */
/* phase.c - each phase reads the clock twice, or puts two stamps, and is reported to
 * libcoll. */
#include "trainer/phase.h"
#include "coll/coll.h"
#include "trainer/clock.h"
#include "trainer/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[N_PHASES] = {"DATA",      "FORWARD", "BACKWARD",
                                            "OPTIMIZER", "COMM",    "EXCHANGE"};

const char *phase_name(enum phase phase) { return names[phase]; }

double phases_hidden(const struct phases *p)
{
    double all = p->seconds[PHASE_EXCHANGE];
    double hidden = all - p->seconds[PHASE_COMM];

    if (!(all > 0))
        return NAN;
    return hidden > 0 ? hidden / all : 0;
}

/* ---- spans ---- */

/* Return 1, or 0 if there is no memory. */
static int make_room(struct phase_spans *spans)
{
    size_t room = spans->room ? 2 * spans->room : 64;
    struct phase_span *more;

    if (spans->n < spans->room)
        return 1;
    more = realloc(spans->at, room * sizeof(*more));
    if (!more)
        return 0;
    spans->at = more;
    spans->room = room;
    return 1;
}

static void append(struct phase_spans *spans, const struct phase_span *span)
{
    if (make_room(spans))
        spans->at[spans->n++] = *span;
}

void phase_drop(struct phase_spans *graph)
{
    free(graph->at);
    *graph = (struct phase_spans){0};
}

void phase_take(struct phase_log *log, size_t from, struct phase_spans *graph)
{
    for (size_t i = from; i < log->open.n; i++)
        append(graph, &log->open.at[i]);
    log->open.n = from;
}

void phase_launch(struct phase_log *log, const struct phase_spans *graph)
{
    for (size_t i = 0; i < graph->n; i++)
        append(&log->open, &graph->at[i]);
}

/* ---- the log ---- */

void phase_init(struct phase_log *log, const struct device *device,
                int has_breakdown)
{
    *log = (struct phase_log){
        .device = device,
        .is_wanted = has_breakdown || coll_timeline_begin() > 0,
    };
}

void phase_fini(struct phase_log *log) { phase_drop(&log->open); }

void phase_forget(struct phase_log *log) { log->open.n = 0; }

/* Add a span to the sums and to the timeline. */
static void count(struct phase_log *log, const struct phase_span *span,
                  double begin, double end)
{
    const char *name = names[span->phase];
    char bucket[32];

    log->sums.seconds[span->phase] += end - begin;
    if (span->phase == PHASE_EXCHANGE) {
        snprintf(bucket, sizeof(bucket), "bucket %d", span->bucket);
        coll_timeline_add(bucket, span->what, begin, end);
    } else if (span->phase != PHASE_COMM) {
        coll_timeline_add(name, name, begin, end);
    }
}

static int is_measured(const struct phase_log *log, enum phase phase)
{
    return log->device->order.stamps ? log->is_wanted || phase == PHASE_COMM
                                     : phase != PHASE_EXCHANGE;
}

struct phase_span phase_begin(struct phase_log *log, enum phase phase)
{
    const struct device_stamps *stamps = log->device->order.stamps;
    struct phase_span span = {.phase = phase,
                              .is_measured = is_measured(log, phase)};

    if (span.is_measured && stamps)
        span.begin = stamps->put(phase == PHASE_EXCHANGE);
    else if (span.is_measured)
        span.time = now();
    return span;
}

struct phase_span phase_begin_exchange(struct phase_log *log, int bucket,
                                       const char *what)
{
    struct phase_span span = phase_begin(log, PHASE_EXCHANGE);

    span.bucket = bucket;
    span.what = what;
    return span;
}

void phase_end(struct phase_log *log, struct phase_span span)
{
    const struct device_stamps *stamps = log->device->order.stamps;

    if (!span.is_measured)
        return;
    if (!stamps) {
        count(log, &span, span.time, now());
        return;
    }
    span.end = stamps->put(span.phase == PHASE_EXCHANGE);
    append(&log->open, &span);
}

int phase_read(struct phase_log *log)
{
    const struct device_stamps *stamps = log->device->order.stamps;

    if (log->open.n == 0)
        return 0;
    if (stamps->read())
        return -1;
    for (size_t i = 0; i < log->open.n; i++) {
        const struct phase_span *span = &log->open.at[i];

        count(log, span, stamps->time(span->begin), stamps->time(span->end));
    }
    phase_forget(log);
    return log->device->order.well();
}
