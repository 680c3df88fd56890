/* SPDX-License-Identifier: BSD-3-Clause */
/* sums.h - sums over the rows of a matrix, by fold() of kernels.h.
 *
 * Each fold leaves a 32nd of the rows, until 32 or fewer are left, which a last kernel
 * adds up.  How rows are added depends on their number alone, so the bits are the same on
 * every GPU and in each run.
 */
#ifndef COLL_TRAINER_CUDA_SUMS_H
#define COLL_TRAINER_CUDA_SUMS_H

#include "trainer/cuda/launch.h"

#include <stddef.h>

/* Make sure that there is memory for the partial sums of such a matrix.
 *
 * Result:    0, or -1 with train_error() set, as from the others.
 */
int sums_prepare(size_t rows, size_t columns);

/* Return where a kernel leaves the first partial sums, fewer rows than the matrix has. */
struct train_span sums_first(size_t rows, size_t columns);

/* Fold partial sums until 32 rows or fewer are left; *sums is then these. */
int sums_fold(struct train_span *sums, size_t columns);

/* Do the same from the beginning: *sums is set to partial sums of `in`, values of the
 * device. */
int sums_of(const float *in, size_t rows, size_t columns,
            struct train_span *sums);

/* Add the sums of the columns of such values to to[columns], f32. */
int sums_add(const float *in, size_t rows, size_t columns, float *to);

#endif
