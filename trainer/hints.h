/* SPDX-License-Identifier: BSD-3-Clause */
/* hints.h - what people type who come from Horovod, PyTorch and DeepSpeed. */
#ifndef COLL_TRAINER_HINTS_H
#define COLL_TRAINER_HINTS_H

#include "tools/common/program.h"

#include <stdio.h>

/* Their options that coll_train has not; ends with a NULL name. */
extern const struct program_hint hint_flags[];

/* Say of each variable of theirs that is set and has no effect here what to do
 * instead, a line each. */
void hint_environment(FILE *to);

#endif
