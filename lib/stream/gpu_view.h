/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_view.h - the view of a communicator's GPUs. */
#ifndef COLL_LIB_STREAM_GPU_VIEW_H
#define COLL_LIB_STREAM_GPU_VIEW_H

struct coll__topo;
struct coll_comm;

/* Find out how near the ranks' GPUs are, and make gpu_view from it; collective, after
 * the devices were joined.  A status, logged. */
int coll__comm_gpus_meet(struct coll_comm *comm);

/* Add the GPUs that CUDA's driver reports to the description of this machine; without a
 * driver, nothing.  A status, logged. */
int coll__gpus_describe(struct coll__topo *topo);

#endif
