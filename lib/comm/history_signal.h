/* SPDX-License-Identifier: BSD-3-Clause */
/* history_signal.h - COLL_HISTORY: which communicators are in the recorder's file, and
 * the signal that makes the reactor's thread write it. */
#ifndef COLL_LIB_COMM_HISTORY_SIGNAL_H
#define COLL_LIB_COMM_HISTORY_SIGNAL_H

struct coll_comm;

/* Add the communicator to the file; remove it, also in a child.  The first communicator
 * installs a handler for SIGUSR2 if the program has none, and the last one removes
 * it. */
void coll__history_add(struct coll_comm *comm);
void coll__history_remove(struct coll_comm *comm);

#endif
