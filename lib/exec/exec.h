/* SPDX-License-Identifier: BSD-3-Clause */
/* exec.h - a program: a plan bound to transports and memory, ready to run.
 *
 * A program is made once for a shape and run any number of times; running
 * allocates nothing.  One thread at a time.
 */
#ifndef COLL_LIB_EXEC_EXEC_H
#define COLL_LIB_EXEC_EXEC_H

#include "lib/device/device.h"
#include "lib/plan/plan.h"
#include "lib/type/op.h"
#include "transports/transport.h"

struct coll__stream_tp; /* transports/stream.h */
struct coll__stream_area;

/* Which transport joins this rank to each rank. */
struct coll__routes {
    struct coll__tp **to; /* [size] */
    struct coll__tp **all;
    int n_all;
    int n_local; /* ranks of this host */
    struct coll__stream_tp
        *streams; /* joins those of ranks' devices; or NULL */
    int looks; /* for a message that is about to come, before anything else: how
                * many more than one */
    int is_shared; /* ranks share cores: look so often only for messages that come
                    * from other ones */
};

struct coll__prog;

/* What a plan is bound to. */
struct coll__binding {
    const struct coll__op *op; /* of which pb has but the base */
    const struct coll__routes *routes;
    const struct coll__device *device;
    int channel;         /* of its messages */
    int is_lent_scratch; /* by coll__prog_lend(); else it has its own */
    /* Of a plan that is one message: what that joins when it has ended, with its
     * owner, so that only then there is something to advance.  Else NULL. */
    struct coll__ended *ended;
    void *owner;
    int by_kernel; /* where it is queued: as one kernel, and what fits its slots */
};

/* Make a program of a linked plan.
 *
 * Ownership: takes over plan's contents, on failure as well; routes must
 *            outlive the program, op is copied; *prog is the caller's, to end
 *            by coll__prog_destroy() while it does not run.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INTERNAL (the plan does not suit the device's
 *            streams); logged.
 */
int coll__prog_create(const struct coll__problem *pb, struct coll__plan *plan,
                      const struct coll__binding *to, struct coll__prog **prog);

/* Lend it scratch for the runs to come: as much as coll__prog_scratch() says, on
 * the device, aligned to a cache line. */
void coll__prog_lend(struct coll__prog *prog, void *scratch);

/* Start a run.  head stamps its messages; in and out stay the caller's until
 * the run has ended. */
void coll__prog_start(struct coll__prog *prog, const struct coll__head *head,
                      const void *in, void *out, void *stream);

/* Programs of different channels run side by side.  A round: each looks whether
 * there is something that it can do at once, all transports are moved on, and each
 * does what has become possible.  Nothing blocks.
 *
 * Result:    of look() and advance(): COLL_OK when the run has ended,
 *            COLL_IN_PROGRESS, or the status of what failed; *moved is set when
 *            something moved, never cleared.  Of poll(): how much moved, or a
 *            negative status.
 */
int coll__prog_look(struct coll__prog *prog, int *moved);
int coll__routes_poll(const struct coll__routes *routes);
int coll__prog_advance(struct coll__prog *prog, int *moved);

/* A program of a device with streams puts its runs into a stream: they end for look()
 * when all is there.  Has the stream come to the end of the last one?  COLL_OK,
 * COLL_IN_PROGRESS, or what failed; a run that was captured is not asked for, and counts
 * as reached. */
int coll__prog_reached(struct coll__prog *prog);

/* A graph has a run of it from here on, and may launch that at any time.  Is there no
 * such, and has the stream come past all others, so that what it has on the device is
 * needed no more? */
void coll__prog_keep(struct coll__prog *prog);
int coll__prog_may_go(struct coll__prog *prog);

/* Of a queued program that is no kernel: have its messages read where they lie, as
 * coll__plan_lying() found; takes over `lying`.  COLL_OK or COLL_ERR_NOMEM, logged.
 * Then say for the runs to come where each of the buffers is that were meant there. */
int coll__prog_read_in_place(struct coll__prog *prog, struct coll__span *lying);
void coll__prog_lies(struct coll__prog *prog, enum coll__buf buf,
                     const struct coll__stream_area *area, size_t off);

/* Give up a run that has not ended: wait until the device has done what it was
 * given, so that nothing is written any more.  Its transports are closed. */
void coll__prog_abandon(struct coll__prog *prog);

/* After a run failed: the transfer that did, or NULL when it was the
 * transport as a whole, or the device. */
const struct coll__xfer *coll__prog_fault(const struct coll__prog *prog);

const struct coll__plan *coll__prog_plan(const struct coll__prog *prog);

/* Does it run as listed (a small one), so that one coll__prog_look() may do? */
int coll__prog_is_listed(const struct coll__prog *prog);

/* Bytes of memory that its runs need on the device, its own or lent; and bytes of
 * all that it holds else, of the host and of the device. */
size_t coll__prog_scratch(const struct coll__prog *prog);
size_t coll__prog_bytes(const struct coll__prog *prog);
size_t coll__prog_on_device(const struct coll__prog *prog);

void coll__prog_destroy(struct coll__prog *prog);

#endif
