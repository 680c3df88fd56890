/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.h - what users of Horovod, PyTorch and DeepSpeed type. */
#ifndef COLL_TRAINER_HINTS_H
#define COLL_TRAINER_HINTS_H

#include "tools/common/program.h"

#include <stdio.h>

/* Options of theirs that coll_train does not have; ends with a NULL name. */
extern const struct program_hint hint_flags[];

/* Print a line for each variable of theirs that is set and has no effect here:
 * what to do instead. */
void hint_environment(FILE *to);

#endif
