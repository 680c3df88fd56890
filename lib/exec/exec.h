/* SPDX-License-Identifier: BSD-3-Clause */
/* exec.h - a program: a plan bound to transports and memory, ready to run.
 *
 * A program is made once for a shape and run any number of times; running
 * allocates nothing.  One thread at a time.
 */
#ifndef COLL_LIB_EXEC_EXEC_H
#define COLL_LIB_EXEC_EXEC_H

#include "lib/device/device.h"
#include "lib/exec/routes.h"
#include "lib/plan/plan.h"
#include "lib/type/op.h"

struct coll__registration; /* transports/stream.h */

struct coll__prog;

/* What a plan is bound to. */
struct coll__binding {
    const struct coll__op *op; /* of which pb has but the base */
    const struct coll__routes *routes;
    const struct coll__device *device;
    int channel;         /* of its messages */
    int is_lent_scratch; /* by coll__prog_lend(); else the program allocates it */
    /* A plan of one message: the list that the message joins when it has ended, with
     * its owner; only then is there something to advance.  Else NULL. */
    struct coll__ended *ended;
    void *owner;
    int by_kernel; /* in a stream: run the plan as one kernel */
};

/* Make a program of a linked plan.
 *
 * Ownership: takes over plan's contents, on failure as well; routes must
 *            outlive its runs, op is copied; *prog is the caller's, to end
 *            by coll__prog_destroy() while it does not run.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INTERNAL (the plan does not suit the device's
 *            streams); logged.
 */
int coll__prog_create(const struct coll__problem *pb, struct coll__plan *plan,
                      const struct coll__binding *to, struct coll__prog **prog);

/* Lend the program scratch for the next runs: coll__prog_scratch() bytes on the device,
 * aligned to a cache line. */
void coll__prog_lend(struct coll__prog *prog, void *scratch);

/* Start a run.  sig stamps its messages; in and out stay the caller's until
 * the run has ended. */
void coll__prog_start(struct coll__prog *prog,
                      const struct coll__signature *sig, const void *in,
                      void *out, void *stream);

/* Programs of different channels run side by side, in rounds.  In a round each program
 * does what it can do at once (look), all transports make progress
 * (coll__routes_poll()), and each program does what has become possible (advance).
 * Nothing blocks.
 *
 * Result:    COLL_OK when the run has ended, COLL_IN_PROGRESS, or the status of what
 *            failed; *moved is set when something moved, never cleared.
 */
int coll__prog_look(struct coll__prog *prog, int *moved);
int coll__prog_advance(struct coll__prog *prog, int *moved);

/* Does the device or the host read the program while it runs?  Then it may be destroyed
 * only if its stream has passed all runs, and no graph holds one. */
int coll__prog_is_read(const struct coll__prog *prog);

/* Use direct reads for the messages that coll__plan_direct_reads() found; takes over
 * `direct`.  Only for programs in a stream.  Returns COLL_OK or COLL_ERR_NOMEM, logged.
 * Then coll__prog_set_registered() names, for the next runs, the registered memory of
 * each buffer. */
int coll__prog_read_in_place(struct coll__prog *prog,
                             struct coll__span *direct);
void coll__prog_set_registered(struct coll__prog *prog, enum coll__buf buf,
                               const struct coll__registration *reg,
                               size_t off);

/* For the next runs, in a stream: are the buffers pinned memory of the host? */
void coll__prog_set_host(struct coll__prog *prog, int is_in_host,
                         int is_out_host);

/* Return the transfer that failed a run; NULL if the whole transport or the device
 * failed. */
const struct coll__xfer *coll__prog_fault(const struct coll__prog *prog);

const struct coll__plan *coll__prog_plan(const struct coll__prog *prog);

/* Does listed.c run it?  Such programs are small: one coll__prog_look() may be enough. */
int coll__prog_is_listed(const struct coll__prog *prog);

/* Return numbers of bytes.  scratch: the scratch that a run needs on the device, its
 * own or lent.  bytes, on_device: all other memory that the program holds, on the host
 * and on the device. */
size_t coll__prog_scratch(const struct coll__prog *prog);
size_t coll__prog_bytes(const struct coll__prog *prog);
size_t coll__prog_on_device(const struct coll__prog *prog);

void coll__prog_destroy(struct coll__prog *prog);

#endif
