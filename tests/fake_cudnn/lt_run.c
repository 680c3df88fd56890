/* SPDX-License-Identifier: BSD-3-Clause */
/* lt_run.c - a product and its epilogue. */
#include "tests/fake_cudnn/lt.h"

#include <stdlib.h>

/* cuBLASLt's RELU makes 0 of a NaN (forums.developer.nvidia.com, 329783). */
static float relu(float x) { return x > 0 ? x : 0; }

/* What d held is not read if beta is 0. */
static void finish(const struct product *p, void *const *views,
                   const float *result)
{
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            float x = p->alpha * result[i * p->n + j];

            if (p->beta != 0)
                x += p->beta * number_get(views[2], p->c.type,
                                          i * p->c.row + j * p->c.col);
            if (p->has_bias)
                x += number_get(views[4], p->d.type, i);
            number_put(views[3], p->d.type, i * p->d.row + j * p->d.col,
                       p->has_relu ? relu(x) : x);
        }
}

/* Nothing may rely on what the output and the workspace held. */
static void soil(const struct product *p, void *const *views)
{
    const float nan = __builtin_nanf("");

    runtime_soil(views[5], p->workspace);
    for (size_t i = 0; p->beta == 0 && i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            number_put(views[3], p->d.type, i * p->d.row + j * p->d.col, nan);
}

void lt_run(void *const *views, const void *args, unsigned seed)
{
    const struct product *p = args;
    float *result = calloc(p->m * p->n, sizeof(*result));
    const struct gemm g = {.m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .a = {views[0], p->read_as, p->a.row, p->a.col},
                           .b = {views[1], p->read_as, p->b.row, p->b.col},
                           .c = result};

    (void)seed;
    soil(p, views);
    gemm_add(&g);
    finish(p, views, result);
    free(result);
    runtime_soil(views[5], p->workspace);
}
