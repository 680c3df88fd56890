/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.h - a communicator: who its ranks are, and what joins them.
 *
 * Who may use what:
 *  - rank, size, peers, settings, members, links and views do not change once the
 *    communicator is made; any thread reads them.
 *  - `failure` is written under its lock by any thread, the reactor's too.
 *    `failure.status` is stored last, with release: a thread that loads it with
 *    acquire may read `failure.text`, which is not written again.
 *  - `calls` is written by the owner (lib/run/owner.h) and read by the reactor, which
 *    answers other ranks' questions from it.
 *  - `records.recorder` is under the recorder's lock (lib/trace/recorder.h).
 *  - all else is the owner's.
 */
#ifndef COLL_LIB_COMM_COMM_H
#define COLL_LIB_COMM_COMM_H

#include "lib/comm/awaited.h"
#include "lib/comm/idle.h"
#include "lib/exec/routes.h"
#include "lib/plan/view.h"
#include "lib/topo/inside.h"
#include "lib/trace/log.h"
#include "lib/trace/recorder.h"
#include "lib/util/lock.h"

#include <pthread.h>
#include <stdatomic.h>

struct coll__ctrl;
struct coll__plan_set;
struct coll__tune;

#define MAX_TRANSPORTS 8
#define SETTING_BYTES 128

/* Parameters that every rank must have alike; compared when they join. */
struct coll__settings {
    char version[16];
    char algo[SETTING_BYTES];
    char transports[SETTING_BYTES];
    uint64_t chunk, fuse, overtake;
    uint64_t tune; /* the tuning file's hash */
    int is_reproducible;
    int is_checked;   /* calls for streams are compared (COLL_CHECK) */
    int is_diagnosed; /* links are tested (COLL_DIAGNOSE) */
    uint64_t plans; /* the hash of COLL_PLAN_FILE's contents */
};

/* The measured cost of messages between two hosts; alpha 0: not measured. */
struct coll__measured {
    double alpha, beta; /* s, s a byte */
    double gap;         /* s from one short message to the next */
    double both; /* times as long with as many bytes the other way, 1 or more */
};

/* How the ranks reach each other, and what that costs. */
struct coll__links {
    struct coll__tp *tps[MAX_TRANSPORTS]; /* in the order of their opening */
    struct coll__routes routes;
    char names[64];               /* of those in use: "self,shm" */
    struct coll__link dearest[2]; /* within a host, between hosts */
    struct coll__inside inside;   /* the farthest ways within any host */
    struct coll__measured measured;
    struct coll__link_trial *trial; /* of measure.c; transports may hold it */
    char sources[COLL__LEVELS][96]; /* where each level's prices are from */
};

struct coll__failure {
    pthread_mutex_t lock;
    _Atomic int status; /* COLL_OK while there is none */
    char text[COLL__TEXT_MAX];
    _Atomic int n_telling; /* threads that are in coll__comm_fail() */
    /* The owner's: a shrink that has timed out (shrink.c), or NULL. */
    struct coll__shrinking *shrinking;
};

/* A connection broke, and the control connections may soon tell why.  Until then this
 * communicator makes no progress. */
struct coll__lost {
    double until; /* on the clock; 0: no connection broke */
    int peer;
};

/* Whom its rank numbers mean: members.c. */
struct coll__members {
    int *first; /* [size]: each rank's in the first communicator; NULL: equal */
    int n_first; /* ranks of that one */
};

/* How far this rank has come with its calls. */
struct coll__calls {
    struct coll__history history[N_HISTORIES];
    /* [N_SERIES * size]: messages to and from each rank, so far; with a tag, those that a
     * receive has taken */
    _Atomic uint64_t *n_sent, *n_received;
    _Atomic int n_receiving; /* receives with a tag that have not ended */
    /* Requests in any order that it has made; for the owner only. */
    uint32_t n_any_order;
    /* The collective in which this rank's caller has waited for a while; 0: none.
     * Until it ends, this rank starts nothing else. */
    _Atomic uint64_t stuck_in;
    /* The last collective call of this rank that is no operation (coll_comm_split,
     * ...), or NULL.  While the rank waits in this call for the others, its counts do
     * not change. */
    _Atomic(const char *) apart;
};

/* What is recorded of it: records.c. */
struct coll__records {
    struct coll__recorder recorder; /* COLL_HISTORY */
    int metrics;                    /* COLL_METRICS: its number in metrics.h */
    int is_counted; /* among the communicators for which SIGUSR2 is handled */
    uint64_t n_joint; /* traced calls that end on all ranks together */
    double in_joint;  /* s from their start to their end */
};

/* How far its destruction has come: destroy.c. */
struct coll__ending {
    int is_released; /* all ranks have sent their final check; now all go */
    int rc;          /* what destroying it returns, and why */
    char why[COLL__TEXT_MAX];
    struct coll__final_check *all; /* [size] */
    int is_counted;                /* this and below: deferred.c's, locked */
    double put_at;
    struct coll_comm *next;
};

/* Which channel carries which messages.  Collectives are small or large by the bytes of
 * all ranks together, so that a small one does not wait for a large one
 * (the limit overtake).  Operations of streams have a channel of their own, so that they and
 * the host's operations do not wait for each other.  So have requests that ranks start in
 * any order, since their order among the other operations differs between ranks.  Sends and
 * receives use CHANNEL_P2P and up; those with tags have a channel of their own, on which
 * lib/tags matches them.  On CHANNEL_ORDER the ranks agree which requests begin next
 * (lib/run/any_order.c). */
enum {
    CHANNEL_SMALL,
    CHANNEL_LARGE,
    CHANNEL_STREAM,
    CHANNEL_ANY_SMALL,
    CHANNEL_ANY_LARGE,
    CHANNEL_P2P,
    CHANNEL_P2P_STREAM,
    CHANNEL_TAGS,
    CHANNEL_ORDER
};

_Static_assert(CHANNEL_ORDER + 1 == COLL__CHANNELS, "each has a use");

struct coll_comm {
    int rank, size, n_hosts;
    struct coll__members members;
    unsigned generation; /* of the process that made it (lib/util/lock.h) */
    double timeout;      /* s */
    long stall_warn;     /* s, COLL_STALL_WARN; 0: never */
    int is_deferred;     /* destroying it waits for nobody */
    struct coll__idle idle;
    int holds_device; /* it has state on a device, which ends by a call alone */
    struct coll__peer *peers; /* [size] */
    struct coll__settings settings;
    struct coll__ctrl *ctrl;
    struct coll__links links;
    struct coll__view view;         /* who is near whom, what links cost */
    struct coll__tune *tune;        /* what was measured, or NULL */
    struct coll__plan_set *plan_set; /* COLL_PLAN_FILE's plans */
    struct coll__failure failure;
    struct coll__lost lost;
    struct coll__calls calls;
    struct coll__records records;
    struct coll__patience patience;
    struct coll__ending ending;
    struct coll__run *run;       /* lib/run's state */
    struct coll__stream *stream; /* lib/stream's state, or NULL */
};

/* The operations among which that one counts. */
static inline struct coll__history *
coll__history_of(struct coll_comm *comm, const struct coll__signature *sig)
{
    return &comm->calls.history[sig->series >= N_HISTORIES ? SERIES_HOST
                                                           : sig->series];
}

/* Was the communicator made by this process's parent, before fork()?  Then this process
 * must not use it.  Every call asks this first. */
static inline int coll__comm_is_inherited(const struct coll_comm *comm)
{
    return coll__is_inherited(comm->generation);
}

/* Has the communicator failed?  Any thread. */
static inline int coll__comm_has_failed(const struct coll_comm *comm)
{
    return atomic_load_explicit(&comm->failure.status, memory_order_relaxed) !=
           COLL_OK;
}

#endif
