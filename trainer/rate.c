/* SPDX-License-Identifier: BSD-3-Clause */
/* rate.c - warm-up and schedules. */
#include "trainer/rate.h"
#include "trainer/optim.h"

#include <math.h>

#define PI 3.14159265358979323846

/* Return the factor of --lr-scale for this number of ranks. */
static double factor_of(const struct args *args, int n_ranks)
{
    return args->lr_scale == LR_LINEAR ? n_ranks
           : args->lr_scale == LR_SQRT ? sqrt(n_ranks)
                                       : 1;
}

static double base_of(const struct args *args)
{
    return args->lr > 0 ? args->lr : args->opt == OPTIM_ADAM ? 0.001 : 0.01;
}

void rate_init(struct learning_rate *r, const struct args *args, int n_ranks,
               uint64_t epoch_steps)
{
    *r = (struct learning_rate){
        .base = base_of(args),
        .factor = factor_of(args, n_ranks),
        .warmup = args->warmup_steps ? args->warmup_steps
                                     : args->warmup_epochs * epoch_steps,
        .epoch_steps = epoch_steps,
        .n_steps = args->epochs * epoch_steps,
        .schedule = args->schedule,
    };
}

double rate_full(const struct learning_rate *r) { return r->base * r->factor; }

/* Return the schedule's factor for a step after the warm-up. */
static double curve(const struct learning_rate *r, uint64_t step)
{
    const struct schedule *s = &r->schedule;
    uint64_t epoch = (step - 1) / r->epoch_steps;
    double part =
        (double)(step - 1 - r->warmup) / (double)(r->n_steps - r->warmup);

    return s->kind == SCHEDULE_STEP ? pow(s->factor, (double)(epoch / s->every))
           : s->kind == SCHEDULE_COSINE ? (1 + cos(PI * part)) / 2
                                        : 1;
}

double rate_at(const struct learning_rate *r, uint64_t step)
{
    if (step > r->warmup)
        return rate_full(r) * curve(r, step);
    return r->base * ((double)step / (double)r->warmup * (r->factor - 1) + 1);
}
