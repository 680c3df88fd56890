/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.h - what a communicator holds.
 *
 * Owners: the calling thread (one at a time) has all of it but `failure`, which
 * the reactor and any aborting thread write too, and `history`, which the
 * reactor reads.  `failure.status` is stored last, with release; whoever loads
 * it with acquire may read `failure.text`, which is not written again.
 */
#ifndef COLL_LIB_API_COMM_H
#define COLL_LIB_API_COMM_H

#include "lib/algo/algo.h"
#include "lib/boot/ctrl.h"
#include "lib/exec/exec.h"
#include "lib/exec/wait.h"
#include "lib/plan/book.h"
#include "lib/plan/tune.h"
#include "lib/trace/history.h"
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
    uint64_t chunk, fuse, tune; /* tune: the hash of the tuning file */
    int is_reproducible;
    uint64_t plans; /* the hash of COLL_PLAN_FILE's contents */
};

/* How to make a communicator. */
struct coll__options {
    double timeout;
    int is_reproducible;
    /* NULL: as the environment says; else with the tuning file's content */
    const struct coll__settings *settings;
    struct coll__tune *tune;
};

struct coll__failure {
    pthread_mutex_t lock;
    _Atomic int status; /* COLL_OK while there is none */
    char text[COLL__TEXT_MAX];
};

/* How long nothing has moved, and what was done about it; times on the clock,
 * all 0 while things move. */
struct coll__patience {
    double begin, looked, ask, pause;
};

struct coll_comm {
    int rank, size, n_hosts;
    double timeout;
    struct coll__peer *peers; /* [size] */
    struct coll__settings settings;
    struct coll__ctrl *ctrl;

    struct coll__tp *tps[MAX_TRANSPORTS];
    struct coll__routes routes;
    char transports[64]; /* "self,shm" */
    struct coll__link links[2]; /* the dearest within a host, between hosts */
    struct coll__book book; /* COLL_PLAN_FILE's plans */
    struct coll__view view; /* who is near whom, what links cost */
    struct coll__tune *tune; /* what was measured, or NULL */

    struct coll__failure failure;
    int is_quiet; /* failed, and its transports are closed */
    struct coll__history history;
    struct coll__wait wait;
    struct coll__patience patience; /* of coll_test() */
    unsigned n_tests_idle;

    /* Started ones in order: a collective runs alone, sends and receives side
     * by side; those from `waiting` on have not begun. */
    struct coll_request *running, **last, *waiting;
    uint64_t *n_sent, *n_received; /* [size]: messages to and from each rank */
    struct coll_request *cached; /* of blocking calls, the latest first */
    int n_cached;
    size_t cached_bytes; /* of their scratch */
    size_t *packed; /* [2 size]: displacements that a caller leaves out */
    unsigned char *stage; /* allreduces that travel as one */
    size_t stage_len;
    struct coll_request *own; /* the caller's, not destroyed yet */
    unsigned char token_in, token_out; /* a barrier's one byte */
};

/* One of several operations that travel as one. */
struct coll__part {
    const void *in;
    void *out;
    size_t len; /* bytes */
    struct coll__part *next;
};

struct coll_request {
    struct coll_comm *comm;
    struct coll_args args;
    struct coll__problem problem; /* its counts are in `numbers` */
    size_t *numbers;
    struct coll__head head; /* seq is set at each start */
    struct coll__prog *prog;
    size_t tmp_len; /* its scratch */
    size_t in_len, out_len; /* bytes of the buffers */
    int is_p2p;
    int is_plain; /* all that there is to judge about a call like it is where
                   * its buffers lie */
    int status; /* of the last start; COLL_IN_PROGRESS while it runs */
    struct coll__part *parts; /* to be copied to the stage and back, or NULL */
    struct coll_request *next; /* running after it, or kept after it */
    struct coll_request *own_next, **own_at; /* among the caller's */
};

/* ---- comm.c -------------------------------------------------------------- */

/* Make a communicator over an open bootstrap, and close that. */
int coll__comm_open(struct coll__boot *boot,
                    const struct coll__options *options,
                    struct coll_comm **comm);

/* ---- fail.c -------------------------------------------------------------- */

/* Fail the communicator here and on every other rank; the first failure
 * stays.  Any thread.  Returns status. */
int coll__comm_fail(struct coll_comm *comm, int status, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* The same without telling the others: they know.  Any thread. */
void coll__comm_set_failure(struct coll_comm *comm, int status,
                            const char *text);

/* Return the communicator's failure, logged for this thread, or COLL_OK. */
int coll__comm_status(struct coll_comm *comm);

/* A request's program failed with this status: find out why, fail, return a
 * status. */
int coll__comm_prog_failed(struct coll_comm *comm,
                           const struct coll_request *request, int status);

/* The deadline of the running operation passed: ask where everybody is, fail,
 * return a status. */
int coll__comm_timed_out(struct coll_comm *comm,
                         const struct coll_request *request, double timeout);

/* Nothing moved for a while: look for messages that no rank is going to take,
 * since the ranks disagree.  COLL_OK or a status. */
int coll__comm_look_around(struct coll_comm *comm);

/* Still nothing: ask the others what they are in, and compare.  COLL_OK or a
 * status. */
int coll__comm_ask_around(struct coll_comm *comm);

/* ---- links.c ------------------------------------------------------------- */

/* Open transports in order of preference until all ranks reach each other, and
 * agree on the links' cost.  Collective.  Logged; closed by links_close(). */
int coll__comm_links_open(struct coll_comm *comm);
void coll__comm_links_close(struct coll_comm *comm, int is_orderly);

/* ---- view.c -------------------------------------------------------------- */

/* Group the ranks by what they share, and price the levels by the links. */
int coll__comm_view_init(struct coll_comm *comm);

/* ---- request.c ----------------------------------------------------------- */

/* Make a request for a problem that coll__args_check() has made of args; the
 * problem's arrays are copied.  Logged. */
int coll__request_make(struct coll_comm *comm, const struct coll_args *args,
                       const struct coll__problem *pb,
                       struct coll_request **request);
void coll__request_free(struct coll_request *request);

/* Free the caller's requests that are left. */
void coll__comm_forget_own(struct coll_comm *comm);

/* ---- progress.c ---------------------------------------------------------- */

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

/* Wait until it is done; its status. */
int coll__request_wait(struct coll_request *request, double timeout);

/* Nothing moved in a wait for this request, which p is about: is it too long,
 * or is something wrong?  COLL_OK, or the communicator's failure. */
int coll__comm_consider(struct coll_comm *comm,
                        const struct coll_request *request, double timeout,
                        struct coll__patience *p);

/* The communicator failed: let its transports touch nobody's buffers any more
 * and end what runs.  Returns the failure. */
int coll__comm_quiesce(struct coll_comm *comm);

/* ---- cache.c ------------------------------------------------------------- */

/* Carry out a blocking call, or note it for the thread's group. */
int coll__comm_call(struct coll_comm *comm, const struct coll_args *args);

/* Judge args, and take the kept request of that shape or make one; put it back
 * when it does not run any more. */
int coll__cache_take(struct coll_comm *comm, const struct coll_args *args,
                     struct coll_request **request);
void coll__cache_put(struct coll_request *request);

/* Free all that it keeps. */
void coll__cache_forget(struct coll_comm *comm);

/* ---- group.c ------------------------------------------------------------- */

/* How deep in groups this thread is.  Every call asks: so it has a place of its
 * own among what threads have from the start (four bytes, which programs that
 * load the library later have room for as well). */
extern _Thread_local int coll__group_depth
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Is this thread within coll_group_start() and coll_group_end()? */
static inline int coll__group_is_open(void)
{
    return coll__group_depth > 0;
}

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
int coll__args_check(const struct coll_args *args, const struct coll_comm *comm,
                     struct coll__problem *pb);

/* Log what is wrong with them; COLL_ERR_INVALID. */
int coll__args_wrong(const struct coll_args *args, const char *what);

/* Judge a caller's struct: its size, and no unknown tail that is not zero.
 * Copies it into ours[len], the rest zero. */
int coll__struct_take(const void *theirs, void *ours, size_t len,
                      const char *name);

/* ---- buffers.c ----------------------------------------------------------- */

/* Judge where the buffers lie; says in pb whether they are one. */
int coll__buffers_check(const struct coll_args *args, struct coll__problem *pb);

#endif
