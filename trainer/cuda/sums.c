/* SPDX-License-Identifier: BSD-3-Clause */
/* sums.c - folds, one after the other, in memory that all layers share. */
#include "trainer/cuda/sums.h"
#include "trainer/cuda/gpu.h"

enum { FACTOR = 32 };

static size_t fewer(size_t rows) { return (rows + FACTOR - 1) / FACTOR; }

/* Each fold writes behind what it reads. */
int sums_prepare(size_t rows, size_t columns)
{
    size_t n = 0;

    do {
        rows = fewer(rows);
        n += rows;
    } while (rows > FACTOR);
    return gpu_room(&gpu.partial, n * columns * sizeof(float));
}

struct train_span sums_first(size_t rows, size_t columns)
{
    return floats(gpu.partial.at, fewer(rows) * columns);
}

int sums_fold(struct train_span *sums, size_t columns)
{
    size_t rows = sums->len / (columns * sizeof(float));
    uint32_t add = 0;

    while (rows > FACTOR) {
        size_t n = fewer(rows) * columns;
        struct train_span to = {sums->at + sums->len, n * sizeof(float)};

        if (LAUNCH(fold_f32, n, ARG(*sums), ARG(to), ARG(add)))
            return -1;
        *sums = to;
        rows = fewer(rows);
    }
    return 0;
}

int sums_of(const float *in, size_t rows, size_t columns,
            struct train_span *sums)
{
    struct train_span from = values(in, rows * columns);
    uint32_t add = 0;

    *sums = sums_first(rows, columns);
    if (LAUNCH_VALUES(fold, fewer(rows) * columns, ARG(from), ARG(*sums),
                      ARG(add)))
        return -1;
    return sums_fold(sums, columns);
}

int sums_add(const float *in, size_t rows, size_t columns, float *to)
{
    struct train_span sums, out = floats(to, columns);
    uint32_t add = 1;

    if (sums_of(in, rows, columns, &sums))
        return -1;
    return LAUNCH(fold_f32, columns, ARG(sums), ARG(out), ARG(add));
}
