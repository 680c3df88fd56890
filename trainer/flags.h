/* SPDX-License-Identifier: BSD-3-Clause */
/* flags.h - coll_train's options, as the table of tools/common/program.h. */
#ifndef COLL_TRAINER_FLAGS_H
#define COLL_TRAINER_FLAGS_H

#include "tools/common/program.h"
#include "trainer/args.h"

/* The command line of coll_train, whose fields are those of struct args.  What is
 * wrong is left to train_error(). */
extern const struct program coll_train;

/* Return the option of that name, which there is. */
const struct program_option *flag_named(const char *name);

#endif
