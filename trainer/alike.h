/* SPDX-License-Identifier: BSD-3-Clause */
/* alike.h - ranks that are to train one model are asked for the same. */
#ifndef COLL_TRAINER_ALIKE_H
#define COLL_TRAINER_ALIKE_H

#include "trainer/args.h"
#include "trainer/ddp.h"

/* Compare what decides a run over all ranks; collective.  What a rank alone does for
 * itself may differ: where its files lie, what it prints, how many threads it has.
 *
 * Result:    0, or -1 on all ranks with train_error() naming the first flag that is
 *            not the same.
 */
int args_check_alike(const struct args *args, struct ddp *ddp);

#endif
