/* SPDX-License-Identifier: BSD-3-Clause */
/* hostlist.h - lists of hosts as Slurm writes them: "n[1-3,07],m04", also
 * "r[0-1]c[0-3]". */
#ifndef COLL_LIB_BOOT_HOSTLIST_H
#define COLL_LIB_BOOT_HOSTLIST_H

#include <stddef.h>

#define COLL__HOST_NAME 256 /* bytes of a name, with its NUL */

/* Write the list's first host.  Returns 0; or -1, and the name is empty: the text is no
 * list, or the name does not fit in `len`.  Any text is safe. */
int coll__hostlist_first(const char *list, char *name, size_t len);

#endif
