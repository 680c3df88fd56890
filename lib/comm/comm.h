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
 *  - `recorder` is under the recorder's lock (lib/trace/recorder.h).
 *  - all else is the owner's.
 */
#ifndef COLL_LIB_COMM_COMM_H
#define COLL_LIB_COMM_COMM_H

#include "lib/exec/routes.h"
#include "lib/plan/view.h"
#include "lib/proof/plan_set.h"
#include "lib/topo/inside.h"
#include "lib/trace/log.h"
#include "lib/trace/recorder.h"
#include "lib/util/lock.h"

#include <pthread.h>
#include <stdatomic.h>

struct coll__boot;
struct coll__ctrl;
struct coll__ctrl_part;
struct coll__tune;

#define MAX_TRANSPORTS 8
#define SETTING_BYTES 128

/* Parameters that every rank must have alike; compared when they join. */
struct coll__settings {
    char version[16];
    char algo[SETTING_BYTES];
    char transports[SETTING_BYTES];
    uint64_t chunk, fuse, overtake, stage, levels_min,
        tune; /* tune: the tuning file's hash */
    int is_reproducible;
    int is_checked; /* calls for streams are compared (COLL_CHECK) */
    uint64_t plans; /* the hash of COLL_PLAN_FILE's contents */
};

/* How to make a communicator. */
struct coll__options {
    double timeout;
    int is_reproducible, is_deferred, wants_thread;
    /* The communicator that this one is split from.  Its settings, tuning file and
     * measured prices are inherited.  NULL: the environment decides. */
    const struct coll_comm *parent;
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
};

/* A connection broke, and the control connections may soon tell why.  Until then this
 * communicator makes no progress. */
struct coll__lost {
    double until; /* on the clock; 0: no connection broke */
    int peer;
};

/* When a communicator last made progress, and which checks were made since then.  Times
 * of coll__now(); all 0 while there is progress. */
struct coll__patience {
    double since, looked, asked;
    double pause; /* s, before it asks again */
};

/* Whom its rank numbers mean: members.c. */
struct coll__members {
    int *first; /* [size]: each rank's in the first communicator; NULL: equal */
    int n_first; /* ranks of that one */
};

/* How far this rank has come with its calls. */
struct coll__calls {
    struct coll__history history[N_HISTORIES];
    /* [N_SERIES * size]: messages to and from each rank, so far */
    _Atomic uint64_t *n_sent, *n_received;
    /* The collective in which this rank's caller has waited for a while; 0: none.
     * Until it ends, this rank starts nothing else. */
    _Atomic uint64_t stuck_in;
    /* The last collective call of this rank that is no operation (coll_comm_split,
     * ...), or NULL.  While the rank waits in this call for the others, its counts do
     * not change. */
    _Atomic(const char *) apart;
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
 * the host's operations do not wait for each other.  Sends and receives use CHANNEL_P2P
 * and up. */
enum {
    CHANNEL_SMALL,
    CHANNEL_LARGE,
    CHANNEL_STREAM,
    CHANNEL_P2P,
    CHANNEL_P2P_STREAM
};

_Static_assert(CHANNEL_P2P_STREAM + 1 == COLL__CHANNELS, "each has a use");

struct coll_comm {
    int rank, size, n_hosts;
    struct coll__members members;
    unsigned generation; /* of the process that made it (lib/util/lock.h) */
    double timeout;      /* s */
    long stall_warn;     /* s, COLL_STALL_WARN; 0: never */
    int is_deferred;     /* destroying it waits for nobody */
    int is_subcomm;      /* of another one, which tells what is wrong */
    int holds_device; /* it has state on a device, which ends by a call alone */
    struct coll__peer *peers; /* [size] */
    struct coll__settings settings;
    struct coll__ctrl *ctrl;
    struct coll__links links;
    struct coll__view view;         /* who is near whom, what links cost */
    struct coll__tune *tune;        /* what was measured, or NULL */
    struct coll__plan_set plan_set; /* COLL_PLAN_FILE's plans */
    struct coll__failure failure;
    struct coll__lost lost;
    struct coll__calls calls;
    struct coll__recorder recorder;
    struct coll__patience patience;
    struct coll__ending ending;
    struct coll__run *run;       /* lib/run's state */
    struct coll__stream *stream; /* lib/stream's state, or NULL */
};

/* The operations among which that one counts. */
static inline struct coll__history *
coll__history_of(struct coll_comm *comm, const struct coll__signature *sig)
{
    return &comm->calls.history[sig->series == SERIES_COMPARED ? SERIES_HOST
                                                               : sig->series];
}

/* ---- create.c ------------------------------------------------------------ */

/* Make a communicator over an open bootstrap, and close that. */
int coll__comm_open(struct coll__boot *boot,
                    const struct coll__options *options,
                    struct coll_comm **comm);

/* Make a communicator of some of the ranks of `whole`; the arguments are those of
 * coll__ctrl_divide(). */
int coll__comm_divide(struct coll_comm *whole, struct coll__ctrl_part *part,
                      int are_along, struct coll_comm **comm);

/* Was the communicator made by this process's parent, before fork()?  Then this process
 * must not use it.  Every call asks this first. */
static inline int coll__comm_is_inherited(const struct coll_comm *comm)
{
    return coll__is_inherited(comm->generation);
}

/* Log that the function `who` was called in a forked child.  Returns
 * COLL_ERR_INVALID. */
int coll__comm_inherited(const char *who);

/* Free the communicator's memory, also in a forked child.  No other process notices. */
void coll__comm_free(struct coll_comm *comm);

/* Add the bytes that the communicator holds.  As owner. */
void coll__comm_bytes(const struct coll_comm *comm,
                      struct coll_mem_stats *stats);

/* Check every COLL_* variable of the environment (check_params.c).
 *
 * Result:    COLL_OK; COLL_ERR_INVALID with a sentence naming the first bad
 *            value.  An unknown COLL_* name is a warning with the nearest one, or with
 *            the limit of the tuning file that has replaced it.
 */
int coll__params_check(void);

/* ---- split.c ------------------------------------------------------------- */

/* Why a rank cannot take part in a split; all ranks refuse it then. */
enum coll__split_fault {
    SPLIT_OK,
    SPLIT_COLOR,   /* below 0, and not COLL_NO_COLOR */
    SPLIT_RUNNING, /* operations are running */
    SPLIT_NULL     /* there is no place for the new communicator */
};

/* Where a rank wants to be. */
struct coll__split {
    enum coll__split_fault fault;
    int color, key;
};

/* Split comm: ranks with the same color form a new communicator, ordered by key and
 * rank.  Collective, as owner, for the call `who`.
 *
 * Result:    COLL_OK and *part, NULL for COLL_NO_COLOR; a status, logged:
 *            COLL_ERR_INVALID on all ranks if one of them has a fault.
 */
int coll__comm_split(struct coll_comm *comm, const char *who,
                     const struct coll__split *wanted, struct coll_comm **part);

/* ---- members.c ----------------------------------------------------------- */

/* Note that rank r of comm, which is being made, is rank ranks[r] of `whole`.  COLL_OK
 * or COLL_ERR_NOMEM, logged; call fini() in both cases. */
int coll__members_init(struct coll_comm *comm, const struct coll_comm *whole,
                       const int *ranks);
void coll__members_fini(struct coll_comm *comm);

/* Write "in the group of ranks 1 3 5 of 8: ", or "" if comm is the first communicator
 * or has the same rank numbers. */
void coll__members_text(const struct coll_comm *comm, char *text, size_t len);

/* ---- fail.c -------------------------------------------------------------- */

/* Fail the communicator here and on every other rank; the first failure
 * stays.  Any thread.  Returns status. */
int coll__comm_fail(struct coll_comm *comm, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fail the communicator on this rank only: the other ranks know already.  Any
 * thread. */
void coll__comm_set_failure(struct coll_comm *comm, int status,
                            const char *text);

/* Fail this communicator only.  The caller passes the failure on to what depends on it.
 * Returns whether this was the first failure. */
int coll__comm_note_failure(struct coll_comm *comm, int status,
                            const char *text);

/* Return the communicator's failure, logged for this thread, or COLL_OK. */
int coll__comm_status(struct coll_comm *comm);

static inline int coll__comm_has_failed(const struct coll_comm *comm)
{
    return atomic_load_explicit(&comm->failure.status, memory_order_relaxed) !=
           COLL_OK;
}

/* A program of the call failed with this status.  Find the cause and fail the
 * communicator.  COLL_OK means that the cause is not known yet: then ask
 * coll__comm_still_lost().
 *
 * Shapes:    fault: the transfer that failed; NULL if the transport as a whole, or the
 *            device, failed.
 */
int coll__comm_run_failed(struct coll_comm *comm,
                          const struct coll__signature *call,
                          const struct coll__xfer *fault, int status);

/* After coll__comm_run_failed() has returned COLL_OK: return the communicator's
 * failure, or COLL_OK while the cause is still not known. */
int coll__comm_still_lost(struct coll_comm *comm);

/* Look for messages that will never be received because the ranks called different
 * operations.  Done in a long wait, and before the history forgets a call.  COLL_OK or
 * a status. */
int coll__comm_look_around(struct coll_comm *comm);

#define COLL__DISAGREE                                                         \
    "the ranks disagree: rank %d called %s where rank %d called %s; %s"
#define COLL__SAME_CALLS                                                       \
    "all ranks must call the same operations in the same order"

/* ---- destroy.c ----------------------------------------------------------- */

/* Destroy the communicator: no operation may still run.  Check that all ranks called
 * the same operations, and leave.  As owner; returns a status, logged. */
int coll__comm_destroy(struct coll_comm *comm);

/* Free the communicator in a forked child; the other ranks do not notice. */
void coll__comm_abandon(struct coll_comm *comm);

/* ---- links.c ------------------------------------------------------------- */

/* Open transports in order of preference until all ranks reach each other, and
 * agree on the links' cost.  Collective.  Logged; closed by links_close(). */
int coll__comm_links_open(struct coll_comm *comm,
                          const struct coll__options *options);

/* Gather len bytes of each rank over the control tree; arg: the communicator. */
int coll__comm_exchange(void *arg, const void *in, size_t len, void *out);

/* Describe the communicator for a transport.  The secret is not filled in: each
 * transport has one of its own. */
struct coll__tp_env coll__comm_env(struct coll_comm *comm);

void coll__comm_links_close(struct coll_comm *comm, int is_orderly);

/* ---- comm_view.c --------------------------------------------------------- */

/* Group the ranks by what they share, and price the levels by the links. */
int coll__comm_view_init(struct coll_comm *comm);

#endif
