/* SPDX-License-Identifier: BSD-3-Clause */
/* phase.h - where the time of a step goes: sums for --breakdown and for the report, and rows
 * in COLL_TIMELINE's picture.
 *
 * Processors work while the host calls them, so the host's clock measures their phases.  A
 * GPU works later: it notes the times at stamps in its work (device.h), also in a graph, and
 * the host reads them when the step is over.
 */
#ifndef COLL_TRAINER_PHASE_H
#define COLL_TRAINER_PHASE_H

#include <stddef.h>

struct device;

enum phase {
    PHASE_DATA,
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_OPTIMIZER,
    PHASE_COMM,     /* the exchange, as far as the computation waits for it */
    PHASE_EXCHANGE, /* all of the exchange, on GPUs alone */
    N_PHASES
};

struct phases {
    double seconds[N_PHASES];
};

/* Return the share of the exchange that is hidden behind the computation, 0 to 1, or NaN
 * where the exchange is not measured. */
double phases_hidden(const struct phases *p);

/* A phase from its begin to its end. */
struct phase_span {
    enum phase phase;
    int is_measured;
    int bucket;       /* PHASE_EXCHANGE: whose, from 0, */
    const char *what; /* and by what */
    double time;      /* of the host's clock at its begin; or, of a GPU, */
    int begin, end;   /* its stamps */
};

struct phase_spans {
    struct phase_span *at;
    size_t n, room;
};

struct phase_log {
    const struct device *device; /* borrowed */
    int is_wanted; /* a GPU's phases are; else only its PHASE_COMM is measured */
    struct phases sums;
    struct phase_spans open; /* whose stamps are not read yet */
};

/* Make an empty log, after libcoll has a communicator.  All phases of a GPU are wanted for
 * --breakdown and for a timeline.  End it by phase_fini(). */
void phase_init(struct phase_log *log, const struct device *device,
                int has_breakdown);
void phase_fini(struct phase_log *log);

/* Begin a phase, or bucket's exchange by an operation such as "ALLREDUCE". */
struct phase_span phase_begin(struct phase_log *log, enum phase phase);
struct phase_span phase_begin_exchange(struct phase_log *log, int bucket,
                                       const char *what);

/* Note a phase that ends now.  If there is no memory, it is left out. */
void phase_end(struct phase_log *log, struct phase_span span);

/* Count the phases of a GPU that have ended; it has come to all stamps then.
 *
 * Result:    0, or -1 with train_error() set.
 */
int phase_read(struct phase_log *log);

/* Forget the phases that are not read. */
void phase_forget(struct phase_log *log);

/* phase_take: take the open phases from number `from` on out of the log, as those of a graph.
 * phase_launch: note that the graph is launched, so they come again.  phase_drop: free
 * them. */
void phase_take(struct phase_log *log, size_t from, struct phase_spans *graph);
void phase_launch(struct phase_log *log, const struct phase_spans *graph);
void phase_drop(struct phase_spans *graph);

/* Return "FORWARD". */
const char *phase_name(enum phase phase);

#endif
