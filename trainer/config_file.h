/* SPDX-License-Identifier: BSD-3-Clause */
/* config_file.h - flags from a file: lines `batch-size = 512`. */
#ifndef COLL_TRAINER_CONFIG_FILE_H
#define COLL_TRAINER_CONFIG_FILE_H

#include "trainer/args.h"

/* Read a file of flags over what *args holds.
 *
 * A line is a flag's name without its dashes, and `= value` unless it is a switch;
 * '_' counts as '-', blanks around name and value do not, and # begins a comment
 * where it begins a line or follows a blank.
 *
 * Result:    0, or -1 with train_error() set, which begins with FILE:LINE.
 * Ownership: values are parts of args->config_text, which is made here.
 */
int config_read(struct args *args, const char *path);

#endif
