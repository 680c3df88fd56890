/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.h - what stands behind an ncclComm_t, the work that makes and ends it, and groups.
 *
 * A communicator of libcoll is made, split and registered by calls that wait for the
 * other ranks.  Such work is a job.  Outside of a group the calling thread does it.  At
 * the end of a group each communicator has a thread for its jobs, so that one thread of
 * the program can be several ranks.  If the communicator does not block
 * (ncclConfig_t.blocking 0), a thread does the job and the call returns ncclInProgress.
 */
#ifndef COLL_NCCL_COMM_H
#define COLL_NCCL_COMM_H

#include "bindings/nccl/nccl.h"

#include <coll/coll.h>
#include <pthread.h>
#include <stdatomic.h>

/* A buffer that was registered, by ncclCommRegister() or as a window. */
struct ncclWindow {
    struct ncclWindow *next;
    struct ncclComm *comm;
    void *at;
    int is_shared; /* the ranks read it in place: coll_mem_register() */
    int is_freed; /* the program has freed its memory, before the ranks ended it */
};

struct ncclComm {
    unsigned magic;
    /* NULL while it is made, and when it has ended; while a thread does a job, written
     * under the lock */
    struct coll_comm *coll;
    void *context;          /* of its GPU */
    int device, rank, size;
    int is_blocking;
    int is_finalized;
    atomic_int n_calls; /* that use coll now */
    struct ncclWindow *windows;
    atomic_int
        n_ending; /* that the program has ended, and the ranks have not */

    pthread_mutex_t lock; /* to write what follows */
    pthread_cond_t idle;  /* n_jobs has become 0 */
    atomic_int n_jobs;    /* that threads have not ended */
    int is_orphan;        /* the program has dropped it meanwhile */
    ncclResult_t result;  /* of the jobs that a thread did */
    char why[512];
};

/* One piece of work that waits for other ranks. */
struct nccl__job {
    struct nccl__job *next;
    ncclResult_t (*run)(struct nccl__job *job);
    struct ncclComm *owner; /* the jobs of one owner run one after the other */
    struct ncclComm *made;  /* the communicator that it makes, or NULL */
    struct ncclComm **out;  /* where `made` stands for the program */
    struct ncclWindow *window; /* that it registers, with its bytes */
    size_t len;
    ncclUniqueId id;
    int color, key;
    int *excluded, n_excluded; /* owned */
    ncclResult_t result;
    char why[512];
};

/* ---- communicators (comm.c) -------------------------------------------------- */

/* Allocate a communicator of the current GPU, without ranks. */
ncclResult_t nccl__comm_new(const char *who, struct ncclComm **out);
void nccl__comm_free(struct ncclComm *comm);

/* Is it a communicator that operations can use?  Else say why not. */
ncclResult_t nccl__comm_check(const char *who, const struct ncclComm *comm);

/* The same for a communicator that may still be made. */
ncclResult_t nccl__comm_is(const char *who, const struct ncclComm *comm);

/* Take config's settings over.  NULL leaves them as they are. */
ncclResult_t nccl__config_read(const char *who, const ncclConfig_t *config,
                               struct ncclComm *comm);

/* Complete a communicator with that of libcoll. */
void nccl__comm_made(struct ncclComm *comm, struct coll_comm *coll);

/* Drop a communicator: end all that runs and free it, now or when its jobs end. */
void nccl__comm_drop(struct ncclComm *comm);

/* Initialize one rank of a communicator, on the current GPU. */
ncclResult_t nccl__comm_init(ncclComm_t *comm, int size, const ncclUniqueId *id,
                             int rank, const ncclConfig_t *config);

/* ---- jobs (job.c) ------------------------------------------------------------- */

/* Allocate a job for an owner. */
ncclResult_t nccl__job_new(const char *who, struct ncclComm *owner,
                           struct nccl__job **out);
void nccl__job_free(struct nccl__job *job);

/* Do a job: here, in a thread, or when the group ends.  The job is taken over. */
ncclResult_t nccl__job_do(struct nccl__job *job);

/* Do the jobs of a group, and free them. */
ncclResult_t nccl__jobs_do(struct nccl__job *jobs);

/* ---- groups (group.c) ----------------------------------------------------------- */

/* Is a group open in this thread? */
int nccl__group_is_open(void);

/* Add a job to the open group. */
void nccl__group_add(struct nccl__job *job);

/* Note an error of a call for the end of the open group, if there is one; return it. */
ncclResult_t nccl__group_spoil(ncclResult_t result);

ncclResult_t nccl__group_start(void);
ncclResult_t nccl__group_end(void);

/* Carry an operation out, or note it for the end of the group. */
ncclResult_t nccl__call(const char *who, struct ncclComm *comm,
                        const struct coll_args *args);

/* Destroy an operation of the program's own, when the open group has used it. */
ncclResult_t nccl__group_end_op(enum coll_op op);

/* Does the open group have something to do for the communicator?  Then say so. */
ncclResult_t nccl__group_is_without(const char *who,
                                    const struct ncclComm *comm);

/* ---- windows (window.c) ----------------------------------------------------------- */

/* Does the communicator have a window that its ranks have yet to end? */
int nccl__windows_are_ending(const struct ncclComm *comm);

/* End these, with the other ranks. */
ncclResult_t nccl__windows_end(struct ncclComm *comm);

/* Make the job that does it. */
ncclResult_t nccl__windows_job(struct ncclComm *comm, struct nccl__job **out);

/* Free what is left; coll has ended. */
void nccl__windows_free(struct ncclComm *comm);

#endif
