/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_ranks.c - whole runs among forked ranks. */
#include "tests/trainer/trainer_ranks.h"
#include "trainer/ddp.h"
#include "trainer/model.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

struct job *job_new(void)
{
    struct job *job = job_page(sizeof(*job));

    job_args(&job->args);
    return job;
}

void job_free(struct job *job) { munmap(job, sizeof(*job)); }

int job_begin(struct world_rank *me, struct trainer *t, struct ddp *d)
{
    struct job *job = me->arg;

    return job_start(me, &job->args, t, d);
}

static int train_epochs(struct world_rank *me, struct trainer *t)
{
    struct job *job = me->arg;
    struct epoch_stats stats = {0};

    if (me->rank == 0)
        memcpy(job->began, model_params(t->model), sizeof(job->began));
    while (t->epoch < job->args.epochs) {
        WORLD_CHECK(me, !trainer_epoch(t, &stats, job_no_progress, NULL));
        WORLD_CHECK(me, !trainer_test(t, &stats));
        WORLD_CHECK(me, !trainer_save(t));
    }
    job->crc[me->rank] = t->param_crc;
    if (me->rank == 0) {
        job->stats = stats;
        job->step = t->optim.step;
        job->bytes = t->ddp->bytes;
        memcpy(job->params, model_params(t->model), sizeof(job->params));
    }
    return 0;
}

static int train(struct world_rank *me)
{
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    WORLD_CHECK(me, !trainer_share(&t));
    if (train_epochs(me, &t))
        return 1;
    return job_end(me, &t, &d);
}

void job_run(struct job *job, int ranks)
{
    ck_assert_int_eq(world_fork(ranks, train, job, DEADLINE), 0);
    for (int r = 1; r < ranks; r++)
        ck_assert_uint_eq(job->crc[r], job->crc[0]);
}

double job_distance(const float *a, const float *b)
{
    double sum = 0;

    for (size_t i = 0; i < N_PARAMS; i++) {
        double d = (double)a[i] - (double)b[i];

        sum += d * d;
    }
    return sqrt(sum);
}
