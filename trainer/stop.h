/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.h - signals that end a training run between two steps: SIGUSR1 (the time
 * limit comes: save and end), SIGTERM and SIGINT (end); and newcomers that wait.
 *
 * A signal reaches the ranks in different steps, or only one of them.  From
 * time to time, after the same step, all ranks agree, and with --elastic they also learn
 * whether newcomers wait to join.
 */
#ifndef COLL_TRAINER_STOP_H
#define COLL_TRAINER_STOP_H

#include <stddef.h>

struct ddp;

/* After how many steps the ranks agree: the same number on all of them, by the
 * slowest rank's steps.  Zero at first. */
struct stop_pace {
    size_t every, left; /* steps */
    double since;       /* the last time, s */
    int n_new; /* newcomers that wait; 0 but where the ranks have just agreed */
};

/* Let a thread wait for these signals.  Until stop_catch() they have their
 * usual effect.
 *
 * No handler may run in a thread that computes: oneDNN's matrix products, up to
 * 3.11.1, use the stack pointer for other addresses, and the system would write
 * a handler's frame over the heap.
 *
 * Result:    0, or -1 with train_error() set.
 * Threads:   the only thread of the process calls it; later threads inherit
 *            that the signals are blocked.
 * Source:    oneDNN issue 4845.
 */
int stop_init(void);

/* Catch the signals from now on.  A second signal of a kind ends the process as
 * usual, but SIGUSR1 never does: batch systems send it more than once.
 * stop_release() leaves the signals to the system again. */
void stop_catch(void);
void stop_release(void);

/* Return "SIGTERM". */
const char *stop_name(int signal);

/* After a step: learn whether any rank was told to stop, and whether newcomers wait.
 *
 * Result:    0 and *signal and pace->n_new, the same on every rank, 0 if there was none;
 *            or -1 with train_error() set.  The ranks know of a signal a tenth of a
 *            second after it came, or after the step that ends then.
 * Threads:   one.
 * Cost:      with several ranks, an allreduce of 24 bytes ten times a second; with
 *            --elastic rank 0 then also asks the launcher.
 */
int stop_asked(struct ddp *d, struct stop_pace *pace, int *signal);

/* Return how many steps of `seconds` each the ranks make until they agree
 * again.  `was` is the number so far; the result is at most twice that, since a step
 * may have been short by chance. */
size_t stop_every(size_t was, double seconds);

#endif
