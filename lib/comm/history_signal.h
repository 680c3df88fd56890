/* SPDX-License-Identifier: BSD-3-Clause */
/* history_signal.h - COLL_HISTORY: communicators in the recorder's file, and the
 * signal that has it written. */
#ifndef COLL_LIB_COMM_HISTORY_SIGNAL_H
#define COLL_LIB_COMM_HISTORY_SIGNAL_H

#include "lib/comm/comm.h"

/* Have the communicator in the file from now on; and no more, also in a child.  The
 * first and the last one of the process begin and end to take SIGUSR2, if the program
 * has no use for it. */
void coll__history_add(struct coll_comm *comm);
void coll__history_remove(struct coll_comm *comm);

#endif
