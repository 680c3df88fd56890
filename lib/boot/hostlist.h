/* SPDX-License-Identifier: BSD-3-Clause */
/* hostlist.h - lists of hosts as Slurm writes them: "n[1-3,07],m04", also
 * "r[0-1]c[0-3]". */
#ifndef COLL_LIB_BOOT_HOSTLIST_H
#define COLL_LIB_BOOT_HOSTLIST_H

#include <stddef.h>

#define COLL__HOST_NAME 256 /* bytes of a name, with its NUL */

/* Write the list's first host: 0; or -1, and the name is empty: this is no list, or
 * the name is longer than `len` lets it be.  Any text may come. */
int coll__hostlist_first(const char *list, char *name, size_t len);

#endif
