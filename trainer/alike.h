/* SPDX-License-Identifier: BSD-3-Clause */
/* alike.h - check that all ranks have the same options and the same model. */
#ifndef COLL_TRAINER_ALIKE_H
#define COLL_TRAINER_ALIKE_H

#include "trainer/args.h"
#include "trainer/ddp.h"
#include "trainer/model.h"

/* Compare the options that decide a run's results; every rank calls it.
 *
 * A rank may have options of its own for where its files are, what it prints,
 * and how many threads it has.
 *
 * Result:    0; or -1 on all ranks with train_error() naming the first option
 *            that differs.
 */
int args_check_alike(const struct args *args, struct ddp *ddp);

/* Return a number of those options; with high probability others have another number. */
uint64_t args_digest(const struct args *args);

/* Check that all ranks have this model, layer by layer; every rank calls it.
 *
 * Result:    as of args_check_alike(), naming the first layer that differs.
 */
int model_check_alike(const struct model *m, struct ddp *ddp);

#endif
