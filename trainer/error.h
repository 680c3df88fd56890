/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h - the one sentence that says why the trainer cannot go on.
 *
 * The function that first knows the cause records the sentence and returns -1;
 * its callers pass -1 on; main prints it once, and exits with its cause.
 */
#ifndef COLL_TRAINER_ERROR_H
#define COLL_TRAINER_ERROR_H

/* Who can mend it: the program's exit status. */
enum train_cause {
    CAUSE_MACHINE = 1, /* the machine: a disk, memory, a library */
    CAUSE_USER = 2,    /* the user: options, variables, data, a checkpoint */
    CAUSE_RANKS = 3,   /* a collective failed */
    CAUSE_LOSS = 4     /* training diverged */
};
#define TRAIN_CAUSES 8 /* above all of them */

/* Record a sentence with the cause and the remedy.  It may contain the last
 * one: train_error() can be an argument.
 *
 * Result:    -1, always, so that a caller can return it.
 * Threads:   one.
 */
int train_fail_by(enum train_cause cause, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a fault of the machine, and for one of the user. */
#define train_fail(...) train_fail_by(CAUSE_MACHINE, __VA_ARGS__)
#define train_refuse(...) train_fail_by(CAUSE_USER, __VA_ARGS__)

/* Record that `what` cannot be written, because of errno; the remedy depends on errno
 * and ends with "name another " and `elsewhere`. */
int train_cannot_write(const char *what, const char *elsewhere);

/* Return the last sentence recorded, "" when there is none.
 *
 * Ownership: static, until the next train_fail().
 */
const char *train_error(void);

/* Return its cause; CAUSE_MACHINE when there is none. */
enum train_cause train_cause(void);

#endif
