/* SPDX-License-Identifier: BSD-3-Clause */
/* config_file.h - flags from a file: lines `batch-size = 512`. */
#ifndef COLL_TRAINER_CONFIG_FILE_H
#define COLL_TRAINER_CONFIG_FILE_H

#include "trainer/args.h"

/* Read options from a file over those in *args.
 *
 * A line is an option's name without dashes, followed by `= value` unless it is
 * a switch.  '_' counts as '-'.  Blanks around name and value are ignored.  #
 * begins a comment at the start of a line or after a blank.
 *
 * Result:    0, or -1 with train_error() set, which begins with FILE:LINE.
 * Ownership: values point into args->config_text, which is allocated here.
 */
int config_read(struct args *args, const char *path);

#endif
