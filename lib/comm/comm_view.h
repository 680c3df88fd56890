/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_view.h - who is near whom in a communicator, and what its levels cost. */
#ifndef COLL_LIB_COMM_COMM_VIEW_H
#define COLL_LIB_COMM_COMM_VIEW_H

struct coll_comm;

/* Group the ranks by what they share, and price the levels by the links. */
int coll__comm_view_init(struct coll_comm *comm);

#endif
