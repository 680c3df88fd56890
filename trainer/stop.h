/* SPDX-License-Identifier: BSD-3-Clause */
/* stop.h - signals that end a training run between two steps: SIGUSR1 (time runs
 * out: save and end), SIGTERM and SIGINT (end).
 *
 * A signal reaches the ranks in different steps, or one of them alone; after
 * each step they agree.
 */
#ifndef COLL_TRAINER_STOP_H
#define COLL_TRAINER_STOP_H

struct ddp;

/* Take the signals from now on; a second one of a kind ends the process as ever.
 * And leave them to the system again. */
void stop_catch(void);
void stop_release(void);

/* Learn whether any rank was told to stop.
 *
 * Result:    0 and *signal, 0 while none was and the same on every rank; or -1
 *            with train_error() set.
 * Threads:   one.
 * Cost:      an allreduce of 8 bytes where there are several ranks.
 */
int stop_asked(struct ddp *d, int *signal);

#endif
