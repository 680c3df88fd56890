/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h - the one sentence that says why the trainer cannot go on.
 *
 * The function that first knows the cause records the sentence and returns -1;
 * its callers pass -1 on; main prints it once.
 */
#ifndef COLL_TRAINER_ERROR_H
#define COLL_TRAINER_ERROR_H

/* Record a sentence with the cause and the remedy.  It may be made of the last
 * one: train_error() is a fit argument.
 *
 * Result:    -1, always, so that a caller can return it.
 * Threads:   one.
 */
int train_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return the last sentence recorded, "" when there is none.
 *
 * Ownership: static, until the next train_fail().
 */
const char *train_error(void);

#endif
