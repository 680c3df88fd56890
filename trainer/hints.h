/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.h - what people type who come from Horovod, PyTorch and DeepSpeed. */
#ifndef COLL_TRAINER_HINTS_H
#define COLL_TRAINER_HINTS_H

#include <stdio.h>

/* Return what to do instead of a flag of theirs that coll_train has not; NULL
 * for a name that is none. */
const char *hint_for_flag(const char *name);

/* Say of each variable of theirs that is set and has no effect here what to do
 * instead, a line each. */
void hint_environment(FILE *to);

#endif
