/* SPDX-License-Identifier: BSD-3-Clause */
/* joined.h - a rank is one process: programs that a rank starts inherit the launcher's
 * variables, but are not that rank.
 *
 * A process that has joined bears a mark with a hash of those variables.  A process whose
 * ancestor bears the mark of the same variables is a child of a rank.  A shell that the
 * launcher started never joins, so the programs that it starts, one after the other, are
 * ranks.  A launcher within a rank sets variables of its own, so its ranks are ranks.
 */
#ifndef COLL_LIB_BOOT_JOINED_H
#define COLL_LIB_BOOT_JOINED_H

#include "lib/boot/boot.h"

/* Mark this process until it ends or calls exec().  Best effort: a process that could not
 * be marked is not found. */
void coll__joined_mark(const struct coll__boot_ops *ops);

/* Return the pid of an ancestor that has joined with the same variables, or 0. */
int coll__joined_ancestor(const struct coll__boot_ops *ops);

#endif
