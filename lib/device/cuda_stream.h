/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stream.h - what a call on a stream asks of CUDA: whose its buffers are, which
 * context it is of, whether it is being captured.
 *
 * A stream is what the caller gave, but that NULL, the legacy stream, is known by
 * the other name that CUDA has for it: so whatever has a stream is a device's.
 */
#ifndef COLL_LIB_DEVICE_CUDA_STREAM_H
#define COLL_LIB_DEVICE_CUDA_STREAM_H

#include "lib/device/cuda.h"

/* CU_STREAM_LEGACY */
#define COLL__LEGACY_STREAM ((void *)1)

/* Look whether there is a CUDA driver in the process, for coll__device_is_here: who
 * has device memory has one.  Costs about a microsecond while there is none. */
void coll__cuda_look(void);

/* Has the thread a current context?  Where there is no driver, or none that was
 * started, it has none; no driver is started to find out. */
int coll__cuda_has_context(void);

/* What the driver knows of an address: nothing, of memory of the host that it has
 * pinned, or of a device's.
 *
 * Result:    and the number of the device, of a device's; 0 bytes are no one's.
 * Threads:   any; a driver that was not started knows nothing.
 * Cost:      some 100 ns.
 */
enum coll__whose { WHOSE_NOBODYS, WHOSE_HOSTS, WHOSE_DEVICES };
enum coll__whose coll__cuda_whose(const void *ptr, int *device);

/* The context of a stream, current from enter() to leave(). */
struct coll__cuda_place {
    void *ctx;
    int device;
    int is_captured; /* what is put there now becomes a part of a graph */
    const char
        *closed; /* why nothing can be put there, with the remedy; NULL */
};

/* Errors:    COLL_ERR_INVALID (the legacy stream of no context, a context that is
 *            gone), COLL_ERR_UNSUPPORTED (no driver), COLL_ERR_SYSTEM; logged,
 *            nothing to leave.
 * Threads:   any; enter and leave by the same one.
 */
int coll__cuda_enter(void *stream, struct coll__cuda_place *place);
void coll__cuda_leave(void);

/* Of a stream that is being captured, with its context current: have drop(arg)
 * called when nothing is left of what it becomes a part of, neither the graph nor
 * what was made of it, nor a launch.
 *
 * Result:    COLL_OK; or a status, and it is called all the same, at once or soon.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_SYSTEM; logged.
 * Threads:   drop() is called by any, and must not call CUDA.
 */
int coll__cuda_hold(void *stream, void (*drop)(void *arg), void *arg);

#endif
