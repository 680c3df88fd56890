/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - a NaN of one rank reaches all ranks in the average of the
 * gradients. */
#include "trainer/watch.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/finite.h"
#include "trainer/optim.h"
#include "trainer/train.h"

#include <math.h>
#include <stdio.h>

int watch_pass(struct trainer *t, struct model *m, int n, double loss)
{
    if (isfinite(loss) || t->step.bad_place)
        return 0;
    return finite_in_pass(m, n, &t->step.bad_place);
}

/* Record that `what` went wrong at this place, in a sentence with the remedy.
 */
static int say(const struct trainer *t, const char *what, int place)
{
    const char *resume = *t->args->checkpoint
                             ? " and go on from the last checkpoint by "
                               "--resume auto"
                             : "";
    char name[FINITE_NAME];

    finite_name(name, t->model, place);
    return train_fail_by(CAUSE_LOSS,
                         "%s: the first is %s; lower --lr (the rate is %g)%s",
                         what, name, t->optim.lr, resume);
}

/* Find the first place that any rank has kept.
 *
 * Result:    1, *place and *rank; 0 if no rank has kept one; or -1 with
 *            train_error() set.
 */
static int first_place(struct trainer *t, int *place, int *rank)
{
    double size = t->ddp->size, first = -HUGE_VAL;

    *place = *rank = 0;
    if (t->step.bad_place)
        first = -(t->step.bad_place * size + t->ddp->rank);
    t->step.bad_place = 0;
    if (ddp_max(t->ddp, &first, 1))
        return -1;
    if (!isfinite(first))
        return 0;
    *place = (int)(-first / size);
    *rank = (int)(-first - *place * size);
    return 1;
}

/* Record the same sentence on every rank. */
static int stop(struct trainer *t, const char *what)
{
    int place, rank;
    char text[128];

    if (first_place(t, &place, &rank) < 0)
        return -1;
    snprintf(text, sizeof(text), "%s is not finite on rank %d", what, rank);
    return say(t, text, place);
}

int watch_step(struct trainer *t, size_t step)
{
    char what[96];

    snprintf(what, sizeof(what), "the loss of step %zu in epoch %llu", step + 1,
             (unsigned long long)t->epoch + 1);
    return stop(t, what);
}

/* Find the first place of parameters or of this rank's state that is not
 * finite, or 0. */
static int find_after_step(struct trainer *t, int *place)
{
    const struct optim *o = &t->optim;
    size_t at;

    if (finite_in_params(t->model, place))
        return -1;
    if (*place)
        return 0;
    if (finite_on_device(t->device, o->state, o->n_state, &at))
        return -1;
    if (at < o->n_state)
        *place =
            finite_place_of_state(t->model, ddp_param_at(t->ddp, at % o->n));
    return 0;
}

/* A loss may be finite although parameters are not: relu makes 0 of minus
 * infinity, and no loss follows the last step.  With ZeRO only one rank may see
 * it. */
int watch_epoch(struct trainer *t, double test_loss)
{
    int place, rank, found;
    char what[96];

    if (!isfinite(test_loss)) {
        snprintf(what, sizeof(what), "the test loss after epoch %llu",
                 (unsigned long long)t->epoch);
        return stop(t, what);
    }
    if (find_after_step(t, &t->step.bad_place))
        return -1;
    found = first_place(t, &place, &rank);
    if (found <= 0)
        return found;
    snprintf(what, sizeof(what),
             "after step %llu, the last of epoch %llu, not all is finite",
             (unsigned long long)t->optim.step, (unsigned long long)t->epoch);
    return say(t, what, place);
}
