/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.h - what a communicator holds.
 *
 * Owners: the owner (owner.c) has all of it but `failure`, which the
 * reactor and any aborting thread write too; `history`, which the reactor reads with
 * the few counts that it needs; `calling`, of which a thread looks for itself; and
 * `family`, under a lock of its own (subcomms.c).  `failure.status` is stored last, with
 * release; whoever loads it with acquire may read `failure.text`, which is not
 * written again.
 */
#ifndef COLL_LIB_COMM_COMM_H
#define COLL_LIB_COMM_COMM_H

#include "lib/algo/algo.h"
#include "lib/run/cache.h"
#include "lib/stream/subcomms.h"
#include "lib/trace/recorder.h"
#include "lib/run/parts.h"
#include "lib/stream/calls.h"
#include "lib/ctrl/ctrl.h"
#include "lib/exec/exec.h"
#include "lib/exec/wait.h"
#include "lib/proof/plan_set.h"
#include "lib/price/tune.h"
#include "lib/topo/inside.h"
#include "lib/trace/history.h"
#include "lib/util/lock.h"
#include "transports/transport.h"

#include <pthread.h>
#include <stdatomic.h>

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
    /* NULL: as the environment says; else with the tuning file's content */
    const struct coll__settings *settings;
    struct coll__tune *tune;
    const struct coll__measured *measured; /* by its parent, or NULL */
};

/* What messages between two hosts took; alpha 0: nobody measured. */
struct coll__measured {
    double alpha, beta; /* s, s a byte */
    double gap;         /* s from one short message to the next */
    double both; /* times as long with as many bytes the other way, 1 or more */
};

struct coll__failure {
    pthread_mutex_t lock;
    _Atomic int status; /* COLL_OK while there is none */
    char text[COLL__TEXT_MAX];
};

/* Since when nothing of a communicator has moved, and what was done about it;
 * times on the clock, all 0 while things move. */
struct coll__patience {
    double since, looked, asked;
    double pause; /* s, before it asks again */
};

/* Whom its rank numbers mean: members.c. */
struct coll__members {
    int *first; /* [size]: each rank's in the first communicator; NULL: equal */
    int n_first; /* ranks of that one */
};

/* Whose it is to be moved: owner.c. */
enum coll__owner { OWNER_NONE, OWNER_FREE, OWNER_TAKEN };

/* How far it has come in leaving: destroy.c. */
struct coll__ending {
    int is_released; /* all have said farewell; now all go */
    int rc;          /* what destroying it returns, and why */
    char why[COLL__TEXT_MAX];
    struct coll__final_check *all; /* [size] */
    int is_counted; /* this and below: deferred.c's, under its lock */
    double put_at;
    struct coll_comm *next;
};

/* What travels on which channel: collectives by their bytes, of all ranks together,
 * so that a small one does not wait for a large one (COLL_OVERTAKE); what streams
 * come to by itself, so that neither it nor the rest waits for the other; and sends
 * and receives from CHANNEL_P2P on. */
enum {
    CHANNEL_SMALL,
    CHANNEL_LARGE,
    CHANNEL_STREAM,
    CHANNEL_P2P,
    CHANNEL_P2P_STREAM
};

_Static_assert(CHANNEL_P2P_STREAM + 1 == COLL__CHANNELS, "each has a use");

/* What has been started on a channel and has not ended, in that order.  Of
 * collectives the first one runs, alone; sends and receives all run. */
struct coll__queue {
    struct coll_request *first, **last;
    unsigned char *stage; /* allreduces that travel as one */
    size_t stage_len;
};

struct coll_comm {
    int rank, size, n_hosts;
    atomic_int owner;
    /* The thread that is within a caller's function for an operation of it; 0:
     * none is.  Relaxed: a thread looks for itself alone. */
    _Atomic(pthread_t) calling;
    atomic_int missed; /* somebody would have moved it, and sleeps now */
    int is_active;     /* whose turn it is knows */
    int has_thread; /* the caller's: 1 it has the progress thread, -1 that could
                     * not be made, 0 nobody has asked */
    _Atomic(struct coll_request *) submitted;   /* the latest first; owner.c */
    struct coll_comm *next_active, **active_at; /* under owner.c's lock */
    struct coll__members members; /* does not change once it is made */
    unsigned generation; /* of the process that made it (lib/util/lock.h) */
    double timeout;
    long stall_warn;          /* s, COLL_STALL_WARN; 0: never */
    struct coll__peer *peers; /* [size] */
    struct coll__settings settings;
    struct coll__ctrl *ctrl;

    struct coll__tp *tps[MAX_TRANSPORTS];
    struct coll__routes routes;
    char transports[64];        /* "self,shm" */
    struct coll__link links[2]; /* the dearest within a host, between hosts */
    struct coll__inside inside; /* the farthest ways within any host */
    struct coll__measured measured;
    struct coll__link_trial
        *trial; /* of measuring; the transports may hold it */
    char sources[COLL__LEVELS][96]; /* where each level's prices are from */
    struct coll__plan_set plan_set; /* COLL_PLAN_FILE's plans */
    struct coll__view view;         /* who is near whom, what links cost */
    struct coll__view gpu_view; /* the same of their GPUs, for plans of streams;
                                 * nranks 0: these are not joined */
    struct coll__tune *tune;    /* what was measured, or NULL */

    struct coll__failure failure;
    /* Until then there may be news of why the connection to that rank broke, and
     * nothing moves; 0 while none did. */
    double lost_until;
    int lost_peer;
    /* The call of all ranks that this one came to last, beside the operations:
     * while it waits there for the others, its numbers stand still. */
    _Atomic(const char *) apart;
    int is_quiet; /* failed, and its transports are closed */
    struct coll__history history[N_HISTORIES];
    struct coll__recorder recorder;
    struct coll__wait wait;
    struct coll__patience patience;
    unsigned n_tests_idle;
    /* The collective in which the caller of a wait has been for a while, 0 for
     * none: until it ends, nothing else is started here.  The reactor reads it. */
    _Atomic uint64_t stuck_in;

    struct coll__queue queues[COLL__CHANNELS];
    struct coll__ended ended; /* of sends and receives, by their requests */
    struct coll__streams *streams;    /* from the first call for one on */
    struct coll__queued_list *queued; /* programs for streams (programs.c) */
    char no_streams[256]; /* why its ranks' devices are not joined */
    int has_devices;      /* each rank has one, and there are several hosts */
    _Atomic(struct coll__subcomms *)
        family;                  /* it has parts, or is one; or NULL */
    struct coll__levels *levels; /* by which streams go on several hosts */
    int n_streaming;             /* of its batches: under way on the host */
    int n_captured; /* in graphs, of which any may begin when it likes */
    int n_running;  /* in all queues, and those */
    /* [N_SERIES * size]: messages to and from each rank, so far; the reactor reads
     * them */
    _Atomic uint64_t *n_sent, *n_received;
    struct coll__cache cache; /* of blocking calls */
    size_t *packed; /* [2 size]: displacements that a caller leaves out */
    struct coll__sorter sorter;        /* of parts, when they are judged */
    struct coll_request *own;          /* the caller's, not destroyed yet */
    unsigned char token_in, token_out; /* a barrier's one byte */
    int is_deferred;                   /* destroying it waits for nobody */
    struct coll__ending leave;
};

/* Of a call; what a stream comes to names it, be it the legacy one (stream.h). */
static inline enum coll__series coll__series_of(const struct coll_args *args)
{
    return args->stream ? SERIES_STREAM : SERIES_HOST;
}

/* The operations among which that one counts. */
static inline struct coll__history *
coll__history_of(struct coll_comm *comm, const struct coll__head *head)
{
    return &comm->history[head->series == SERIES_COMPARED ? SERIES_HOST
                                                          : head->series];
}

/* One of several operations that travel as one. */
struct coll__part {
    const void *in;
    void *out;
    size_t len; /* bytes */
    struct coll__part *next;
};

/* What was done about a call that waits for longer than COLL_STALL_WARN; times on the
 * clock. */
struct coll__stall {
    uint64_t seq; /* of which call of the request */
    double asked; /* who is missing */
    double said;  /* since when it had waited as that was said, or 0 */
};

struct coll_request {
    struct coll_comm *comm;
    struct coll_args args;
    struct coll__problem problem; /* its counts are in `numbers` */
    size_t *numbers;
    struct coll__head head; /* seq is set at each start */
    struct coll__prog *prog;
    size_t tmp_len;         /* of scratch, its own or lent */
    size_t in_len, out_len; /* bytes of the buffers */
    struct coll__op own_op; /* the caller's function, where it has one */
    int is_p2p, channel;
    int is_plain; /* all that there is to judge about a call like it is where
                   * its buffers lie */
    /* Of the last start; COLL_IN_PROGRESS while it runs.  Stored with release
     * as the last thing that is done about it, by the owner. */
    atomic_int status;
    /* On the clock, 0 before: when the wait for it began, when that was looked at
     * last, and when its deadline was seen to have passed. */
    double waits_since, considered, expired;
    struct coll__stall stall;
    struct coll__part *parts;  /* to be copied to the stage and back, or NULL */
    struct coll_request *next; /* started, submitted or idle after it */
    struct coll_request **queued_at; /* in its queue, while it runs */
    /* Of one that is kept (cache.h): what it is found by, its place, whether a
     * call has taken it, whether it was used again; its scratch then. */
    const char *algorithm; /* the plan's; and when it was started, and began: */
    double called, begun;  /* on the clock, while something is traced */
    uint64_t hash;
    size_t at, bytes;
    int is_kept, is_idle, is_used;
    struct coll__scratch *scratch;
    /* Of a stream's: what started it, and by which ticket it is asked for. */
    int is_streams;
    const struct coll__path *path;
    uint32_t ticket;
    struct coll_request *own_next, **own_at; /* among the caller's */
};

/* ---- comm.c -------------------------------------------------------------- */

/* Make a communicator over an open bootstrap, and close that. */
int coll__comm_open(struct coll__boot *boot,
                    const struct coll__options *options,
                    struct coll_comm **comm);

/* Make one of some of the ranks of whole, as coll__ctrl_divide(). */
int coll__comm_divide(struct coll_comm *whole, struct coll__ctrl_part *part,
                      int are_along, struct coll_comm **comm);

/* Make those of the ranks with one color each, as coll_comm_split(), for `who`. */
int coll__comm_split(struct coll_comm *comm, const char *who, int color,
                     int key, struct coll_comm **part);

/* Is this a child of the process that made the communicator?  Then it is none
 * of its business: every call asks, before anything else. */
static inline int coll__comm_is_inherited(const struct coll_comm *comm)
{
    return coll__is_inherited(comm->generation);
}

/* Say so, as `who`; COLL_ERR_INVALID. */
int coll__comm_inherited(const char *who);

/* Free it, also in a child of the process that made it: nothing here is noticed
 * by anybody else. */
void coll__comm_free(struct coll_comm *comm);

/* ---- members.c ----------------------------------------------------------- */

/* Note that the ranks of comm, which is being made, are these ranks[] of whole.
 * COLL_OK or COLL_ERR_NOMEM, logged; fini() is allowed in any case. */
int coll__members_init(struct coll_comm *comm, const struct coll_comm *whole,
                       const int *ranks);
void coll__members_fini(struct coll_comm *comm);

/* Write "in the group of ranks 1 3 5 of 8: ", or "" where the numbers are those
 * of the first communicator. */
void coll__members_text(const struct coll_comm *comm, char *text, size_t len);

/* ---- fail.c -------------------------------------------------------------- */

/* Fail the communicator here and on every other rank; the first failure
 * stays.  Any thread.  Returns status. */
int coll__comm_fail(struct coll_comm *comm, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same without telling the others: they know.  Any thread. */
void coll__comm_set_failure(struct coll_comm *comm, int status,
                            const char *text);

/* The same of this one alone, whose family is told by the caller; is it the first? */
int coll__comm_note_failure(struct coll_comm *comm, int status,
                            const char *text);

/* Return the communicator's failure, logged for this thread, or COLL_OK. */
int coll__comm_status(struct coll_comm *comm);

/* A request's program failed with this status: find out why, fail, return a
 * status; or COLL_OK: that takes a moment, and coll__comm_still_lost() goes on. */
int coll__comm_prog_failed(struct coll_comm *comm,
                           const struct coll_request *request, int status);

/* The connection to a rank broke, and the control connections know more in a
 * moment: COLL_OK, also of still_lost() until then, which returns a status after. */
int coll__comm_lose(struct coll_comm *comm, int peer);
int coll__comm_still_lost(struct coll_comm *comm);

/* Look for messages that no rank is going to take, since the ranks disagree: in a long
 * wait, and before a call is forgotten.  COLL_OK or a status. */
int coll__comm_look_around(struct coll_comm *comm);

#define COLL__DISAGREE                                                         \
    "the ranks disagree: rank %d called %s where rank %d called %s; %s"
#define COLL__SAME_CALLS                                                       \
    "all ranks must call the same operations in the same order"

/* ---- mem_stats.c --------------------------------------------------------- */

/* Add what it holds.  As owner, or as its caller. */
void coll__comm_bytes(const struct coll_comm *comm,
                      struct coll_mem_stats *stats);

/* ---- destroy.c ------------------------------------------------------------- */

/* coll_comm_destroy(). */
int coll__comm_destroy(struct coll_comm *comm);

/* ---- stall.c --------------------------------------------------------------- */

/* Nothing moved in a wait for the request, as owner: is it too long, or is
 * something wrong?  Never waits.
 *
 * Shapes:    is_blocked: the caller waits until it ends, and the timeout counts
 *            from the start of that (coll__wait_begin()); else it tests now and
 *            then, and the timeout counts from the last movement.
 * Result:    COLL_OK, or the communicator's failure.
 */
int coll__stall_check(struct coll_request *request, double timeout,
                      int is_blocked);

/* A stream stands still in a collective, of which the request has the head; any
 * thread, without owning it, with a patience of its own that is 0 when things move.
 * COLL_OK, or the communicator's failure. */
int coll__stall_check_stream(struct coll_request *standing,
                             struct coll__patience *patience);

/* A call has ended of which it was said that it waits for somebody: say that, too.
 * As owner. */
void coll__stall_end(struct coll_request *request);

/* A wait for the request begins. */
static inline void coll__wait_begin(struct coll_request *request)
{
    request->waits_since = 0;
}

/* Something of the communicator moved, as owner. */
void coll__patience_end(struct coll_comm *comm);

static inline void coll__patience_moved(struct coll_comm *comm)
{
    if (comm->patience.since)
        coll__patience_end(comm);
}

/* Judge another rank's call, as coll__ctrl_events asks. */
enum coll__verdict coll__comm_judge(struct coll_comm *comm,
                                    const struct coll__ctrl_call *call,
                                    int is_gathering,
                                    char text[COLL__TEXT_MAX]);

/* ---- links.c ------------------------------------------------------------- */

/* Open transports in order of preference until all ranks reach each other, and
 * agree on the links' cost.  Collective.  Logged; closed by links_close(). */
int coll__comm_links_open(struct coll_comm *comm,
                          const struct coll__options *options);

/* Gather len bytes of each rank over the control tree; arg: the communicator. */
int coll__comm_exchange(void *arg, const void *in, size_t len, void *out);

/* What transports are told of the communicator; without a secret, which is of one
 * transport alone. */
struct coll__tp_env coll__comm_env(struct coll_comm *comm);

void coll__comm_links_close(struct coll_comm *comm, int is_orderly);

/* ---- view.c -------------------------------------------------------------- */

/* Group the ranks by what they share, and price the levels by the links. */
int coll__comm_view_init(struct coll_comm *comm);

/* ---- request.c ----------------------------------------------------------- */

/* Give a problem arrays of its own, in *numbers, the caller's to free; none where it
 * has none.  COLL_OK or COLL_ERR_NOMEM, not logged. */
int coll__request_numbers(struct coll__problem *pb, size_t **numbers);

/* What names the problem's operation, but for its number. */
struct coll__head coll__request_head(const struct coll__problem *pb,
                                     const struct coll__op *op,
                                     enum coll__series series);

/* The algorithm for a call; a status, logged. */
int coll__request_choose(const struct coll_comm *comm,
                         const struct coll_args *args,
                         const struct coll__problem *pb,
                         const struct coll__algo **algo);

/* Make a request for a problem that coll__args_check() has made of args; the
 * problem's arrays are copied.  Scratch is its own, or lent (coll__prog_lend())
 * before each start.  op: what args->op was, if it may be that no more; or NULL.
 * Logged. */
int coll__request_make(struct coll_comm *comm, const struct coll_args *args,
                       const struct coll__problem *pb, int is_lent_scratch,
                       const struct coll__op *op,
                       struct coll_request **request);
void coll__request_free(struct coll_request *request);

/* Free the caller's requests that are left; also in a child. */
void coll__comm_forget_own(struct coll_comm *comm);

/* ---- compare.c ----------------------------------------------------------- */

/* Take a request by which the ranks compare a call for a stream: all have it
 * started, and it ends when all have called the same (of a message: a receive's, when
 * its sender has).  `places` is a digest of where registered buffers lie, or 0.  To be
 * put back.  Statuses, logged; as owner. */
int coll__compare_take(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places,
                       struct coll_request **request);
void coll__compare_put(struct coll_request *request);

/* All of that, without owning it: returns when it has ended. */
int coll__compare_call(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places);

/* ---- progress.c; all as owner --------------------------------------- */

/* The channel of a problem's messages, the same on every rank. */
int coll__channel_of(const struct coll_comm *comm,
                     const struct coll__problem *pb, enum coll__series series);

/* Queue the request, which does not run, and begin it when it is its turn. */
int coll__request_start(struct coll_request *request);

/* Begin a collective that runs as listed while nothing else runs, and carry it
 * out as far as it goes at once.  Its status; if that is COLL_IN_PROGRESS, it
 * must join the queue. */
int coll__request_dash(struct coll_request *request);
void coll__request_join(struct coll_request *request);

/* Move what runs on.  COLL_OK, or the communicator's failure; *moved says
 * whether anything moved. */
int coll__comm_progress(struct coll_comm *comm, int *moved);

/* Wait until it is done, and move all others meanwhile; its status. */
int coll__request_wait(struct coll_request *request, double timeout);

/* Return the request's status; any thread. */
static inline int coll__request_status(struct coll_request *request)
{
    return atomic_load_explicit(&request->status, memory_order_acquire);
}

/* The communicator failed: let its transports touch nobody's buffers any more
 * and end what runs.  Returns the failure. */
int coll__comm_quiesce(struct coll_comm *comm);

/* ---- group.c ------------------------------------------------------------- */

/* How deep in groups this thread is.  Every call asks.  (As "initial-exec" it would
 * take 1.5 ns less, and all that threads have of the library a place among what they
 * have from the start: little is left of that in a program that loads it later.) */
extern _Thread_local int coll__group_depth
    __attribute__((visibility("hidden")));

/* Is this thread within coll_group_start() and coll_group_end()? */
static inline int coll__group_is_open(void) { return coll__group_depth > 0; }

/* Note an operation for the end of the group; args is copied, arrays too. */
int coll__group_note(struct coll_comm *comm, const struct coll_args *args);

/* The communicator ends: drop what the group has noted for it, if anything;
 * that is COLL_ERR_INVALID. */
int coll__group_forget(const struct coll_comm *comm);

/* ---- params.c ----------------------------------------------------------- */

/* Judge every COLL_* variable of the environment.
 *
 * Result:    COLL_OK; COLL_ERR_INVALID with a sentence naming the first bad
 *            value.  An unknown COLL_* name is a warning with the nearest one.
 */
int coll__params_check(void);

/* ---- check.c ------------------------------------------------------------- */

/* Judge the arguments of an operation and turn them into a problem, which
 * borrows the caller's arrays and the communicator's. */
int coll__args_check(const struct coll_args *args, struct coll_comm *comm,
                     struct coll__problem *pb);

/* Give args arrays of their own in *numbers, for the caller to free(); NULL where
 * the collective has none.  COLL_OK, or COLL_ERR_NOMEM, logged. */
int coll__args_keep(struct coll_args *args, const struct coll_comm *comm,
                    size_t **numbers);

/* Log what is wrong with them; COLL_ERR_INVALID. */
int coll__args_wrong(const struct coll_args *args, const char *what);

/* Judge a caller's struct: its size, and no unknown tail that is not zero.
 * Copies it into ours[len], the rest zero. */
int coll__struct_take(const void *theirs, void *ours, size_t len,
                      const char *name);

/* ---- buffers.c ----------------------------------------------------------- */

/* Judge where the buffers lie; says in pb whether they are one. */
int coll__buffers_check(const struct coll_args *args,
                        struct coll__sorter *sorter, struct coll__problem *pb);

#endif
