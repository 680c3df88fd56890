/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.h - what the ranks do together; the only file that talks to libcoll.
 *
 * Gradients are averaged in buckets.  A bucket is a run of the model's flat
 * array of gradients, so gradients are made where they are sent from, and
 * nothing is copied.  Buckets are filled from the last layer to the first, the
 * order in which the backward pass finishes: with overlap, a bucket sets out as
 * soon as its last gradient is written, and a thread of the library moves it on
 * beside the rest of the pass.  Until ddp_average() returns, a bucket that has
 * set out belongs to the library.
 */
#ifndef COLL_TRAINER_DDP_H
#define COLL_TRAINER_DDP_H

#include "trainer/wire.h"

#include <stddef.h>
#include <stdint.h>

#define DDP_MAX_BUCKETS 64

struct coll_comm;
struct coll_request;
struct model;

struct ddp_bucket {
    float *gradients;
    size_t count;
    int first_layer;  /* the last one to be written */
    uint16_t *packed; /* what travels, where that is not f32 */
    struct coll_request *request;
};

/* How gradients are averaged. */
struct ddp_config {
    size_t bucket_bytes, first_bytes; /* at least, of any and of the first */
    int overlap;
    int sums; /* the ranks' gradients are parts of the average: add them */
    enum wire wire;
};

struct ddp {
    struct coll_comm *comm;
    int rank, size, n_hosts;
    int has_failed; /* a collective failed: talk to nobody any more */
    struct ddp_config config;
    struct ddp_bucket buckets[DDP_MAX_BUCKETS];
    int n_buckets, n_started; /* of this step */
    double seconds; /* spent averaging gradients */
    uint64_t bytes; /* of gradients averaged, as they travelled */
    char algo[32];  /* how the largest bucket is averaged */
};

/* Join the ranks of the launcher; reproducible: sums have the same bits
 * whatever the algorithm, the transport and the cut into buckets.
 *
 * Result:    0, or -1 with train_error() set, as from every function here; the
 *            sentence is coll_last_error()'s.
 * Ownership: end it by ddp_fini().
 * Threads:   one.
 */
int ddp_init(struct ddp *d, int reproducible);
int ddp_fini(struct ddp *d);

/* Be among the ranks of comm, which becomes d's. */
void ddp_adopt(struct ddp *d, struct coll_comm *comm);

/* Return this rank's place on its host, the ranks there, and the host's. */
int ddp_local_rank(const struct ddp *d);
int ddp_local_size(const struct ddp *d);
int ddp_host(const struct ddp *d);

/* Return the transports that join the ranks, "shm". */
const char *ddp_transports(const struct ddp *d);

/* Check that all ranks have this model, layer by layer. */
int ddp_check_model(struct ddp *d, const struct model *m);

/* Cut the model's gradients into buckets (the last may be smaller).
 *
 * Ownership: the gradients are borrowed until ddp_drop_buckets().
 */
int ddp_make_buckets(struct ddp *d, struct model *m,
                     const struct ddp_config *config);
void ddp_drop_buckets(struct ddp *d);

/* Say that the gradients of this layer and of those behind it are written. */
int ddp_layer_done(struct ddp *d, int layer);

/* Average the gradients over the ranks, in place: all that has not set out yet,
 * and wait for the rest. */
int ddp_average(struct ddp *d);

/* Copy values from rank 0 to all. */
int ddp_share_floats(struct ddp *d, float *values, size_t n);
int ddp_share_words(struct ddp *d, uint64_t *words, size_t n);

/* Gather len bytes of each rank into all[size][len] on every rank. */
int ddp_gather_bytes(struct ddp *d, const void *mine, void *all, size_t len);

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
