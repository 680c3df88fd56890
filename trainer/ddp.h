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
 *
 * A rank moves a part of each bucket's parameters: all of it, or with ZeRO stage
 * 1 its share.  Then it gets no more than that part of the averages, needs the
 * optimizer's state of that part alone, and has each bucket's parameters gathered
 * from the ranks when it has moved its own.  Until ddp_await() returned for them,
 * the parameters of a bucket that is being gathered belong to the library.
 *
 * Source: Rajbhandari et al., "ZeRO", SC 2020.
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

/* What one rank moves of a bucket. */
struct ddp_part {
    size_t first, count; /* of the model's parameters */
    size_t at;           /* the first one's place in the rank's state */
};

struct ddp_bucket {
    float *gradients;
    float *params;
    size_t first, count; /* of the model's parameters */
    int first_layer;     /* the last one to be written */
    uint16_t *packed;    /* what travels, where that is not f32 */
    struct coll_request *request, *gather; /* gather: NULL without ZeRO */
};

/* How gradients are averaged. */
struct ddp_config {
    size_t bucket_bytes, first_bytes; /* at least, of any and of the first */
    int overlap;
    int sums; /* the ranks' gradients are parts of the average: add them */
    int zero; /* the stage: 1, or 0 for none */
    enum wire wire;
};

struct ddp {
    struct coll_comm *comm;
    int rank, size, n_hosts;
    int has_failed; /* a collective failed: talk to nobody any more */
    struct ddp_config config;
    struct ddp_bucket buckets[DDP_MAX_BUCKETS];
    int n_buckets, n_started; /* of this step */
    int n_gathering;          /* the first so many are being gathered */
    size_t *counts; /* [size], room for parts while requests are made */
    double seconds; /* spent averaging gradients and gathering parameters */
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

/* Say whether there is a core for one thread more of each rank of this host. */
int ddp_has_spare_core(const struct ddp *d);

/* Return the transports that join the ranks, "shm". */
const char *ddp_transports(const struct ddp *d);

/* Compare n words over all ranks; collective.  *differs is the first that is not the
 * same on all of them, or n; 0, or -1 with train_error() set. */
int ddp_compare_words(struct ddp *d, const uint64_t *words, size_t n,
                      size_t *differs);

/* Check that all ranks have this model, layer by layer. */
int ddp_check_model(struct ddp *d, const struct model *m);

/* Cut the model's gradients into buckets (the last may be smaller), without a
 * word to other ranks.
 *
 * Ownership: gradients and parameters are borrowed until ddp_drop_buckets().
 */
int ddp_make_buckets(struct ddp *d, struct model *m,
                     const struct ddp_config *config);

/* Make them ready to set out, on all ranks alike. */
int ddp_open_buckets(struct ddp *d);
void ddp_drop_buckets(struct ddp *d);

/* Return the part of bucket i that a rank moves, or how many parameters it moves
 * of all buckets; the parameter whose state is at such a place of this rank's. */
struct ddp_part ddp_part(const struct ddp *d, int i, int rank);
size_t ddp_n_own(const struct ddp *d, int rank);
size_t ddp_param_at(const struct ddp *d, size_t at);

/* Say that the gradients of this layer and of those behind it are written. */
int ddp_layer_done(struct ddp *d, int layer);

/* Average the gradients over the ranks, in place: all that has not set out yet,
 * and wait for the rest.  Each rank has the averages of its parts. */
int ddp_average(struct ddp *d);

/* Before any gradient of a step has set out: make a NaN of its average on every
 * rank.  Then ddp_is_spoilt() says so. */
void ddp_spoil(struct ddp *d);
int ddp_is_spoilt(const struct ddp *d);

/* Say that this rank has moved its part of bucket i's parameters; the last bucket
 * goes first, as the next forward pass needs it first. */
int ddp_part_moved(struct ddp *d, int i);

/* Wait until the parameters of the layers up to this one, or of all, are those
 * that the ranks have moved. */
int ddp_await(struct ddp *d, int layer);
int ddp_await_all(struct ddp *d);

/* With ZeRO: copy what each rank has about its parts to rank 0's `whole`, in the
 * order of parameters; or the other way.
 *
 * Shapes:    own[ddp_n_own(rank)]; whole[parameters], on rank 0 alone.
 */
int ddp_collect(struct ddp *d, const float *own, float *whole);
int ddp_spread(struct ddp *d, const float *whole, float *own);

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
