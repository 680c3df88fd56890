/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.h - communication between the ranks; only ddp.c, ddp_memory.c and
 * ddp_ranks.c use libcoll.
 *
 * Gradients are averaged in buckets.  A bucket is a range of the model's flat
 * array of gradients, so that gradients are computed where they are sent from
 * and nothing is copied.  Buckets are filled from the last layer to the first,
 * the order in which the backward pass finishes.  With overlap a bucket is
 * started as soon as its last gradient is written, and a thread of the library
 * moves it while the backward pass goes on.  Until ddp_average() returns, a
 * bucket that was started belongs to the library.
 *
 * A rank updates a part of each bucket's parameters: all of them, or with ZeRO
 * stage 1 its share.  With ZeRO it receives only that part of the averages,
 * holds the optimizer's state of that part only, and each bucket's parameters
 * are gathered from the ranks once they are updated.  Until ddp_await() returns
 * for them, parameters that are being gathered belong to the library.
 *
 * Source:    Rajbhandari et al., "ZeRO", SC 2020.
 */
#ifndef COLL_TRAINER_DDP_H
#define COLL_TRAINER_DDP_H

#include "trainer/wire.h"

#include <stddef.h>
#include <stdint.h>

#define DDP_MAX_BUCKETS 64 /* no more than DEVICE_MARKS */

struct coll_comm;
struct coll_request;
struct device;
struct model;
struct model_score;
struct phase_log;

/* The part of a bucket that one rank updates. */
struct ddp_part {
    size_t first, count; /* of the model's parameters */
    size_t at;           /* place of the first one in the rank's state */
};

struct ddp_bucket {
    float *gradients; /* of the device, as all three */
    float *params;
    uint16_t *packed;    /* its part of the ddp's, or NULL */
    size_t first, count; /* of the model's parameters */
    int first_layer;     /* the gradient that is written last */
    struct coll_request *request, *gather; /* gather: NULL without ZeRO */
};

/* How gradients are averaged. */
struct ddp_config {
    size_t bucket_bytes, first_bytes; /* at least, of any bucket and of the
                                       * first */
    int overlap;
    int sums; /* the ranks' gradients are parts of the average: only add them */
    int zero; /* the stage: 1, or 0 for none */
    enum wire wire;
    /* of the device: this rank's in a step; see ddp_canary() */
    const struct model_score *score;
};

struct ddp {
    struct coll_comm *comm;
    int rank, size, n_hosts;
    int n_first;     /* ranks with which the run began */
    int is_newcomer; /* it joined, or is to join, ranks that were there before */
    int has_gpus;    /* the ranks compute on GPUs */
    int is_elastic;  /* the ranks go on by ddp_shrink() when one dies */
    int has_failed; /* a collective failed: make no further calls, */
    int has_lost;   /* because a rank died: but ddp_shrink() */
    struct ddp_config config;
    const struct device
        *device; /* of buckets and floats; NULL: not yet known */
    struct phase_log *log; /* of the exchange's time; borrowed */
    struct ddp_bucket buckets[DDP_MAX_BUCKETS];
    int is_recorded; /* what is put is recorded in a graph: the host waits for nothing */
    int n_buckets, n_started; /* of this step */
    int n_gathering;          /* buckets 0 to n_gathering - 1 are being
                               * gathered */
    /* The memory of all buckets that is sent, of the device: the gradients, or `packed`. */
    void *sent;
    size_t sent_len;
    int is_open;      /* the GPUs of other ranks read it */
    uint16_t *packed; /* if what is sent is not f32 */
    size_t *counts; /* [size]: memory for parts while requests are created */
    uint64_t bytes; /* bytes of gradients averaged, as they were sent */
    char algo[32];  /* the algorithm of the largest bucket */
};

/* Return 1 if collrun has started this process in place of a rank that died. */
int ddp_is_newcomer(void);

/* Join the ranks of the launcher.  With `reproducible`, sums have the same bits
 * for any algorithm, transport and cut into buckets.  A newcomer waits until the ranks
 * let it in.
 *
 * Result:    0, or -1 with train_error() set, as from every function here; the
 *            sentence is coll_last_error()'s.
 * Ownership: the caller ends it by ddp_fini().
 * Threads:   one.
 */
int ddp_init(struct ddp *d, int reproducible);
int ddp_fini(struct ddp *d);

/* Join the ranks of comm, which *d owns from now on. */
void ddp_adopt(struct ddp *d, struct coll_comm *comm);

/* Go on with the ranks that live, after a collective failed; they all call it.  The
 * buckets are dropped.
 *
 * Result:    as of ddp_init(); after an error nothing but ddp_fini() is left.
 */
int ddp_shrink(struct ddp *d);

/* Return how many newcomers wait; 0 on all ranks but 0, and without is_elastic. */
int ddp_waiting(struct ddp *d);

/* Let n newcomers in; all ranks call it.  The buckets are dropped.
 *
 * Result:    0; or -1 on all ranks with train_error() and has_lost set: a rank or a
 *            newcomer has died, and ddp_shrink() goes on.
 */
int ddp_grow(struct ddp *d, int n);

/* Go on with the same ranks by a new communicator, now that each has a current GPU: only
 * then their GPUs exchange data without the hosts.  All ranks call it; the buckets are
 * dropped. */
int ddp_renew(struct ddp *d);

/* Say that this rank alone ends.  The others learn of it as of a death. */
void ddp_leave(struct ddp *d);

/* Return this rank's number on its host, the number of ranks there, and the
 * host's number. */
int ddp_local_rank(const struct ddp *d);
int ddp_local_size(const struct ddp *d);
int ddp_host(const struct ddp *d);

/* Return 1 if there is a core for one more thread of each rank of this host. */
int ddp_has_spare_core(const struct ddp *d);

/* Return the transports that connect the ranks, such as "shm". */
const char *ddp_transports(const struct ddp *d);

/* Compare n words over all ranks; every rank calls it.
 *
 * Result:    0 and *differs = the first word that is not the same on all of
 *            them, or n; -1 with train_error() set.
 */
int ddp_compare_words(struct ddp *d, const uint64_t *words, size_t n,
                      size_t *differs);

/* Allocate memory of a device for what is sent, zeros, which the GPUs of other ranks can be
 * let read; NULL when there is none.  ddp_release() frees it; NULL is allowed. */
void *ddp_alloc(const struct device *device, size_t len);
void ddp_release(const struct device *device, void *at);

/* Cut the model's gradients into buckets, without communication.  The last
 * bucket may be smaller.
 *
 * Ownership: gradients, parameters and their device are borrowed until
 *            ddp_drop_buckets().
 */
int ddp_make_buckets(struct ddp *d, struct model *m,
                     const struct ddp_config *config);

/* Create the requests of the buckets; every rank calls it. */
int ddp_open_buckets(struct ddp *d);
void ddp_drop_buckets(struct ddp *d);

/* ddp_part: return the part of bucket i that a rank updates.  ddp_n_own: return how
 * many parameters of all buckets a rank updates.  ddp_param_at: return the parameter
 * whose state is at index `at` of this rank's state. */
struct ddp_part ddp_part(const struct ddp *d, int i, int rank);
size_t ddp_n_own(const struct ddp *d, int rank);
size_t ddp_param_at(const struct ddp *d, size_t at);

/* Say that the gradients of this layer and of all later layers are written. */
int ddp_layer_done(struct ddp *d, int layer);

/* Average the gradients over the ranks, in place: start the buckets that are
 * not started, and wait for all.  Each rank has the averages of its parts. */
int ddp_average(struct ddp *d);

/* Return an average of this rank's parts, of the device.  It is not finite on any rank if
 * the loss of a rank was not when its largest bucket was started. */
const float *ddp_canary(const struct ddp *d);

/* Begin or end to record a step in a graph of the device. */
void ddp_record(struct ddp *d, int is_recorded);

/* Return 0 if no collective on a stream of the device has failed so far, else -1 with
 * train_error() set. */
int ddp_well(struct ddp *d);

/* Say that this rank has updated its part of bucket i's parameters.  Buckets
 * come from the last to the first, since the next forward pass needs the last
 * one first. */
int ddp_part_moved(struct ddp *d, int i);

/* Wait until the parameters of the layers up to this one, or of all layers,
 * have arrived from the ranks that update them; on GPUs only the device waits. */
int ddp_await(struct ddp *d, int layer);
int ddp_await_all(struct ddp *d);

/* With ZeRO: copy each rank's state to rank 0's `whole`, in the order of
 * parameters; or back.
 *
 * Shapes:    own[ddp_n_own(rank)]; whole[parameters], on rank 0 only; both of the device.
 */
int ddp_collect(struct ddp *d, const float *own, float *whole);
int ddp_spread(struct ddp *d, const float *whole, float *own);

/* Copy values from rank `root`, or 0, to all ranks.  Floats are of the device, here and
 * below, and are there when the function returns. */
int ddp_share_floats(struct ddp *d, float *values, size_t n, int root);
int ddp_share_words(struct ddp *d, uint64_t *words, size_t n);
int ddp_share_bytes(struct ddp *d, void *bytes, size_t len, int root);

/* Send values to the next rank and receive those of the one before, in a ring of 2 ranks
 * at least. */
int ddp_pass_on(struct ddp *d, const float *values, size_t n, float *before,
                size_t n_before);

/* Gather len bytes of each rank into all[size][len] on every rank. */
int ddp_gather_bytes(struct ddp *d, const void *mine, void *all, size_t len);

/* Replace a number of the device by its sum over all ranks, for what the device is given
 * then. */
int ddp_sum_one(struct ddp *d, double *value);

/* Replace values by their sum, or by the largest, over all ranks. */
int ddp_sum(struct ddp *d, double *values, size_t n);
int ddp_max(struct ddp *d, double *values, size_t n);

/* For these files: note a collective's status, and record its sentence.
 * After an error the communicator can only be shrunk or destroyed.
 *
 * Result:    0, or -1 with train_error() set.
 */
int ddp__check(struct ddp *d, int status);

/* For the same.  ddp__open_memory: let the other ranks read what this one sends, if they can,
 * until the communicator ends or ddp__close_memory(); all ranks call both, and the first
 * returns 0, or -1 with train_error() set.  ddp__release_packed: free the memory of packed
 * gradients, which nobody reads any more. */
int ddp__open_memory(struct ddp *d);
void ddp__close_memory(struct ddp *d);
void ddp__release_packed(struct ddp *d);

/* Learn whether all ranks succeeded.
 *
 * Shapes:    status 0 if this rank did.
 * Result:    *failed = the lowest rank that did not, or -1 if all did.
 */
int ddp_agree(struct ddp *d, int status, int *failed);

#endif
