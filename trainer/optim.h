/* SPDX-License-Identifier: BSD-3-Clause */
/* optim.h - the optimizers: SGD with momentum, Adam, Adagrad. */
#ifndef COLL_TRAINER_OPTIM_H
#define COLL_TRAINER_OPTIM_H

#include "trainer/args.h"

#include <stddef.h>
#include <stdint.h>

struct device;

enum optim_kind { OPTIM_SGD, OPTIM_ADAM, OPTIM_ADAGRAD };

struct optim {
    enum optim_kind kind;
    double lr;
    float momentum;              /* sgd */
    int nesterov;                /* sgd: as Nesterov has it */
    float beta1, beta2, epsilon; /* adam; adagrad has an epsilon too */
    float weight_decay;          /* 0: none */
    uint64_t step;               /* steps made so far */
    size_t n;                    /* parameters that this rank updates */
    size_t n_state;              /* a multiple of n */
    const struct device *device;
    /* of the device; sgd: n velocities; adam: n means of the gradients, then n of their
     * squares; adagrad: n sums of squares */
    float *state;
};

/* Set the fields that options decide, all but the rate. */
void optim_set(struct optim *o, const struct args *args);

/* Set up an optimizer for n parameters, its state zero.
 *
 * Shapes:    optim_set() has been called.
 * Result:    0, or -1 with train_error() set.
 * Ownership: end it by optim_fini(); the device is borrowed until then.
 */
int optim_init(struct optim *o, const struct device *device, size_t n);
void optim_fini(struct optim *o);

/* Return "sgd", "adam" or "adagrad". */
const char *optim_name(enum optim_kind kind);

/* Return how many numbers of state a parameter has. */
size_t optim_arrays(enum optim_kind kind);

/* Adam's rate and epsilon of this step, with its bias corrections. */
struct adam_rates {
    float rate, epsilon;
};

struct adam_rates optim_adam_rates(const struct optim *o);

/* Some of the parameters. */
struct optim_part {
    size_t at; /* place of the first one among the n */
    size_t n;
    float *params; /* of the device, as what follows */
    const float *gradients;
    const float
        *canary; /* nothing is updated unless it is finite; NULL: always */
};

/* Update a part of the parameters.  o->step already counts the step that is being made.
 * This is the `step` function of the CPU's device table.
 *
 * Shapes:    params[n], gradients[n].
 * Result:    sgd:  v = momentum v + g; p -= lr v; with
 *            Nesterov's momentum p -= lr (g + momentum v)
 *            adam: as Kingma and Ba, with bias correction; epsilon is added to
 *            the corrected root.
 *            adagrad:  s += g g; p -= lr g / (sqrt(s) + epsilon)
 *            where g is the gradient + weight_decay p.  These are PyTorch's
 *            rules (tests/trainer/test_trainer_rules.c).  The velocity of
 *            sgd does not contain the rate, so that momentum needs no correction
 *            when the rate changes, which Horovod makes for Keras.  The bits do
 *            not depend on the cut into parts.
 * Cost:      no allocation.
 * Source:    Kingma and Ba, "Adam", ICLR 2015; Sutskever et al., ICML 2013;
 *            Duchi et al., JMLR 12, 2011.
 */
void optim_move(struct optim *o, const struct optim_part *part);

#endif
