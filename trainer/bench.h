/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - --synthetic: images per second of one batch, over and over, with the
 * lines of Horovod's pytorch_synthetic_benchmark. */
#ifndef COLL_TRAINER_BENCH_H
#define COLL_TRAINER_BENCH_H

struct report;
struct trainer;

/* Train on the batch: --num-warmup-batches steps that are not measured, then
 * --num-iters rates of --num-batches-per-iter steps each.  Rank 0 prints.
 *
 * Result:    0, or -1 with train_error() set.  After a signal it ends early,
 *            with t->stop set on every rank.
 */
int bench_run(struct trainer *t, struct report *r);

#endif
