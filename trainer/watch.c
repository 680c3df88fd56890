/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - one rank's NaN travels in the average of the gradients. */
#include "trainer/watch.h"
#include "trainer/error.h"
#include "trainer/finite.h"

#include <math.h>
#include <stdio.h>

void watch_pass(struct trainer *t, struct model *m, int n, double loss)
{
    if (!isfinite(loss) && !t->bad_place)
        t->bad_place = finite_in_pass(m, n);
}

/* `what` went wrong, and there: a sentence with the remedy. */
static int say(const struct trainer *t, const char *what, int place)
{
    const char *resume = *t->args->checkpoint
                             ? " and go on from the last checkpoint by "
                               "--resume auto"
                             : "";
    char name[FINITE_NAME];

    finite_name(name, t->model, place);
    return train_fail("%s: the first is %s; lower --lr (the rate is %g)%s",
                      what, name, t->optim.lr, resume);
}

/* Say the same on every rank: the first place that any of them has kept. */
static int stop(struct trainer *t, const char *what)
{
    double size = t->ddp->size, first = -HUGE_VAL;
    char text[128];
    int place = 0, rank = 0;

    if (t->bad_place)
        first = -(t->bad_place * size + t->ddp->rank);
    t->bad_place = 0;
    if (ddp_max(t->ddp, &first, 1))
        return -1;
    if (isfinite(first)) {
        place = (int)(-first / size);
        rank = (int)(-first - place * size);
    }
    snprintf(text, sizeof(text), "%s is not finite on rank %d", what, rank);
    return say(t, text, place);
}

/* A loss that is not finite has no gradients: one NaN stands for them, and the
 * average brings it to every rank without a message of its own.  (Where a loss
 * is not finite no gradient has set out before.)  All ranks see
 * the same average, so all stop at the same step. */
int watch_average(struct trainer *t, size_t step, double loss)
{
    float *last = model_gradients(t->model) + model_n_params(t->model) - 1;
    char what[96];

    if (!isfinite(loss))
        *last = NAN;
    if (ddp_average(t->ddp))
        return -1;
    if (isfinite(*last))
        return 0;
    snprintf(what, sizeof(what), "the loss of step %zu in epoch %llu", step + 1,
             (unsigned long long)t->epoch + 1);
    return stop(t, what);
}

/* A loss may be finite beside parameters that are not: minus infinity into a
 * relu is 0, and after the last step comes no loss. */
int watch_epoch(struct trainer *t, double test_loss)
{
    char what[96];
    int place;

    if (!isfinite(test_loss)) {
        snprintf(what, sizeof(what), "the test loss after epoch %llu",
                 (unsigned long long)t->epoch);
        return stop(t, what);
    }
    place = finite_in_state(t->model, t->optim.state, t->optim.n_state);
    if (!place)
        return 0;
    snprintf(what, sizeof(what),
             "after step %llu, the last of epoch %llu, not all is finite",
             (unsigned long long)t->optim.step, (unsigned long long)t->epoch);
    return say(t, what, place);
}
