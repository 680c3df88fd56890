/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_ranks.h - whole runs among forked ranks, and what they leave. */
#ifndef COLL_TESTS_TRAINER_RANKS_H
#define COLL_TESTS_TRAINER_RANKS_H

#include "tests/trainer/trainer_job.h"

#include <check.h>

#define N_PARAMS 1199882
#define DEADLINE 120.0

/* A run, and what its rank 0 leaves here; in a page that the ranks share. */
struct job {
    struct args args;
    float params[N_PARAMS], began[N_PARAMS]; /* at the end, at the start */
    struct epoch_stats stats;                /* of the last epoch */
    struct epoch_stats own[8]; /* by rank, before they are put together */
    uint64_t step, bytes;
    uint32_t crc[8];     /* by rank */
    uint64_t stopped[8]; /* the step after which a rank did */
    int one_core;        /* bind the ranks to one */
    char error[8][256];
};

/* Make a job of job_args()'s flags, to be changed; end it by job_free(). */
struct job *job_new(void);
void job_free(struct job *job);

/* Train; all ranks end with the same parameters. */
void job_run(struct job *job, int ranks);

/* Join and prepare, as a rank whose argument is a job; *t and *d are the caller's to
 * end by job_end(). */
int job_begin(struct world_rank *me, struct trainer *t, struct ddp *d);

/* Return the length of a - b, of N_PARAMS numbers. */
double job_distance(const float *a, const float *b);

/* The rows on how a step is split among ranks (trainer_ranks_split.c). */
TCase *split_case(void);

#endif
