/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_job.h - a small training run among ranks of tests/support/world.h. */
#ifndef COLL_TESTS_TRAINER_JOB_H
#define COLL_TESTS_TRAINER_JOB_H

#include <stdio.h> /* world.h prints */

#include "tests/support/world.h"
#include "trainer/train.h"

/* Return zeroed memory that forked ranks share, until munmap(). */
void *job_page(size_t len);

/* The flags of two epochs over 96 synthetic images. */
void job_args(struct args *args);

/* Join the ranks and prepare a trainer, whose args must live on.
 *
 * Result:    0, or 1 when the reason is on stderr.
 * Ownership: end both by job_end(), which returns the same.
 */
int job_start(struct world_rank *me, const struct args *args, struct trainer *t,
              struct ddp *d);
int job_end(struct world_rank *me, struct trainer *t, struct ddp *d);

/* For trainer_epoch(), when nobody wants to hear. */
void job_no_progress(void *arg, const struct progress_stats *p);

#endif
