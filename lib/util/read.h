/* SPDX-License-Identifier: BSD-3-Clause */
/* read.h - read one-line files of the kernel, such as those of /sys. */
#ifndef COLL_LIB_UTIL_READ_H
#define COLL_LIB_UTIL_READ_H

#include <stddef.h>

/* Read the first line of DIR/NAME, without its newline.  Returns -1 if there is none. */
int coll__read_line(const char *dir, const char *name, char *line, size_t len);

/* Read DIR/NAME as a number; return `otherwise` if that fails. */
long coll__read_number(const char *dir, const char *name, long otherwise);

#endif
