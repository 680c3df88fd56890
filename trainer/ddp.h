/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.h - what the ranks do together; the only file that talks to libcoll.
 *
 * Gradients are averaged in buckets.  A bucket is a run of the model's flat
 * array of gradients, so gradients are made where they are sent from, and
 * nothing is copied.  Buckets are filled from the last layer to the first, the
 * order in which the backward pass finishes.
 */
#ifndef COLL_TRAINER_DDP_H
#define COLL_TRAINER_DDP_H

#include <stddef.h>
#include <stdint.h>

#define DDP_MAX_BUCKETS 64

struct coll_comm;
struct model;

struct ddp {
    struct coll_comm *comm;
    int rank, size, n_hosts;
    int has_failed; /* a collective failed: talk to nobody any more */
    struct {
        float *gradients;
        size_t count;
    } buckets[DDP_MAX_BUCKETS];
    int n_buckets;
    double seconds; /* spent averaging gradients */
    uint64_t bytes; /* of gradients averaged */
    char algo[32];  /* how the largest bucket is averaged */
};

/* Join the ranks of the launcher.
 *
 * Result:    0, or -1 with train_error() set, as from every function here; the
 *            sentence is coll_last_error()'s.
 * Ownership: end it by ddp_fini().
 * Threads:   one.
 */
int ddp_init(struct ddp *d);
int ddp_fini(struct ddp *d);

/* Be among the ranks of comm, which becomes d's. */
void ddp_adopt(struct ddp *d, struct coll_comm *comm);

/* Return the transports that join the ranks, "shm". */
const char *ddp_transports(const struct ddp *d);

/* Cut the model's gradients into buckets of bucket_bytes at least (the last
 * may be smaller). */
void ddp_make_buckets(struct ddp *d, struct model *m, size_t bucket_bytes);

/* Average the gradients over the ranks, in place. */
int ddp_average(struct ddp *d);

/* Copy values from rank 0 to all. */
int ddp_share_floats(struct ddp *d, float *values, size_t n);
int ddp_share_words(struct ddp *d, uint64_t *words, size_t n);

/* Replace values by their sum, or their largest, over the ranks. */
int ddp_sum(struct ddp *d, double *values, size_t n);
int ddp_max(struct ddp *d, double *values, size_t n);

/* Learn whether every rank is well.
 *
 * Shapes:    status 0 when this rank is.
 * Result:    *failed = the lowest rank that is not, or -1 when all are.
 */
int ddp_agree(struct ddp *d, int status, int *failed);

#endif
