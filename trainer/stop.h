/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.h - signals that end a training run between two steps: SIGUSR1 (time runs
 * out: save and end), SIGTERM and SIGINT (end).
 *
 * A signal reaches the ranks in different steps, or one of them alone: now and then,
 * after the same step on each, they agree.
 */
#ifndef COLL_TRAINER_STOP_H
#define COLL_TRAINER_STOP_H

#include <stddef.h>

struct ddp;

/* After how many steps the ranks agree: the same on all, of the slowest one's steps.
 * Zero to begin with. */
struct stop_pace {
    size_t every, left; /* steps */
    double since;       /* the last time, s */
};

/* Let a thread wait for these signals from now on, which acts on them as ever until
 * stop_catch().
 *
 * No handler may run in a thread that computes: oneDNN's kernels for products of
 * matrices, up to 3.11.1, keep other addresses than the stack's in the stack
 * pointer, and the system would write a handler's frame into the heap there.
 *
 * Result:    0, or -1 with train_error() set.
 * Threads:   called by the only one there is; those made later inherit that the
 *            signals are not for them.
 * Source:    oneDNN issue 4845.
 */
int stop_init(void);

/* Take the signals from now on; a second one of a kind ends the process as ever, but
 * for SIGUSR1, which never does from now on: batch systems send it more than once.
 * And leave them to the system again. */
void stop_catch(void);
void stop_release(void);

/* Return "SIGTERM". */
const char *stop_name(int signal);

/* A step was made: learn whether any rank was told to stop.
 *
 * Result:    0 and *signal, 0 while none was and the same on every rank; or -1
 *            with train_error() set.  It is known a tenth of a second after it
 *            came, or after the step that then ends.
 * Threads:   one.
 * Cost:      ten times a second an allreduce of 16 bytes, where there are several
 *            ranks.
 */
int stop_asked(struct ddp *d, struct stop_pace *pace, int *signal);

/* Return the steps of `seconds` each until ranks agree again; it was `was`, and grows
 * at most twofold, since a step may have been short by chance. */
size_t stop_every(size_t was, double seconds);

#endif
