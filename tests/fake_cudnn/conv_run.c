/* SPDX-License-Identifier: BSD-3-Clause */
/* conv_run.c - convolutions as products of matrices: a row for each pixel of the output,
 * which holds what the filter sees there.
 *
 *   forward          y = rows * w'
 *   backward filter  dw = dy' * rows
 *   backward data    rows = dy * w, which are added to the pixels that they came from
 */
#include "tests/fake_cudnn/dnn.h"

#include <stdlib.h>
#include <string.h>

enum { PIXELS = 128 }; /* whose rows are made at a time */

struct job {
    const struct conv *c;
    const void *x, *w, *y;
    size_t pixels, row; /* of the output, in all images; numbers of a row */
    float *rows;        /* PIXELS of them */
    float *result;      /* of the whole output */
};

/* ---- rows ---------------------------------------------------------------- */

/* Where the filter's tap t lies in a row: a convolution in the mathematical sense turns
 * the filter by 180 degrees. */
static size_t tap_at(const struct conv *c, int t)
{
    return (size_t)(c->is_flipped ? c->r * c->s - 1 - t : t) * (size_t)c->c;
}

/* The first channel of what tap t sees from a pixel of the output; 0: the padding. */
static int seen(const struct conv *c, size_t pixel, int t, size_t *at)
{
    size_t per_image = (size_t)c->out_h * (size_t)c->out_w;
    int within = (int)(pixel % per_image);
    int y = within / c->out_w * c->stride[0] - c->pad[0] +
            t / c->s * c->dilation[0];
    int x = within % c->out_w * c->stride[1] - c->pad[1] +
            t % c->s * c->dilation[1];

    if (y < 0 || y >= c->h || x < 0 || x >= c->w)
        return 0;
    *at = ((pixel / per_image * (size_t)c->h + (size_t)y) * (size_t)c->w +
           (size_t)x) *
          (size_t)c->c;
    return 1;
}

static void read_rows(const struct job *j, size_t first, size_t n)
{
    const struct conv *c = j->c;
    size_t at;

    memset(j->rows, 0, n * j->row * sizeof(float));
    for (size_t p = 0; p < n; p++)
        for (int t = 0; t < c->r * c->s; t++)
            if (seen(c, first + p, t, &at))
                numbers_get(j->rows + p * j->row + tap_at(c, t), j->x,
                            c->read_as, at, (size_t)c->c);
}

static void add_rows(const struct job *j, size_t first, size_t n)
{
    const struct conv *c = j->c;
    size_t at;

    for (size_t p = 0; p < n; p++)
        for (int t = 0; t < c->r * c->s; t++) {
            const float *from = j->rows + p * j->row + tap_at(c, t);

            if (seen(c, first + p, t, &at))
                for (size_t i = 0; i < (size_t)c->c; i++)
                    j->result[at + i] += from[i];
        }
}

/* ---- products ------------------------------------------------------------ */

/* Numbers of the output side, from a pixel on, as k columns. */
static struct matrix outputs(const struct job *j, size_t first)
{
    size_t k = (size_t)j->c->k;

    return (struct matrix){(const char *)j->y +
                               first * k * number_size(j->c->type),
                           j->c->read_as, k, 1};
}

static void forward(const struct job *j, size_t first, size_t n)
{
    const struct gemm g = {.m = n,
                           .n = (size_t)j->c->k,
                           .k = j->row,
                           .a = {j->rows, F32, j->row, 1},
                           .b = {j->w, j->c->read_as, 1, j->row},
                           .c = j->result + first * (size_t)j->c->k};

    read_rows(j, first, n);
    gemm_add(&g);
}

static void back_data(const struct job *j, size_t first, size_t n)
{
    const struct gemm g = {.m = n,
                           .n = j->row,
                           .k = (size_t)j->c->k,
                           .a = outputs(j, first),
                           .b = {j->w, j->c->read_as, j->row, 1},
                           .c = j->rows};

    memset(j->rows, 0, n * j->row * sizeof(float));
    gemm_add(&g);
    add_rows(j, first, n);
}

static void back_filter(const struct job *j, size_t first, size_t n)
{
    struct matrix dy = outputs(j, first);
    const struct gemm g = {.m = (size_t)j->c->k,
                           .n = j->row,
                           .k = n,
                           .a = {dy.at, dy.type, dy.col, dy.row},
                           .b = {j->rows, F32, j->row, 1},
                           .c = j->result};

    read_rows(j, first, n);
    gemm_add(&g);
}

/* Pixels from `from` up to `to`. */
static void stretch(const struct job *j, size_t from, size_t to)
{
    static void (*const passes[])(const struct job *, size_t,
                                  size_t) = {[FORWARD] = forward,
                                             [BACK_DATA] = back_data,
                                             [BACK_FILTER] = back_filter};

    for (size_t n; from < to; from += n) {
        n = to - from < PIXELS ? to - from : PIXELS;
        passes[j->c->pass](j, from, n);
    }
}

/* output = alpha * result + beta * output: what it held is not read if beta is 0. */
static void blend(const struct conv *c, void *out, const float *result,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float old = c->beta != 0 ? c->beta * number_get(out, c->type, i) : 0;

        number_put(out, c->type, i, c->alpha * result[i] + old);
    }
}

/* The workspace is overwritten before and after, and so is an output that is not read:
 * whoever has them overlap with data notices. */
void conv_run(void *const *views, const void *args, unsigned seed)
{
    const struct conv *c = args;
    const size_t lens[] = {conv_x_len(c), conv_w_len(c), conv_y_len(c)};
    int out = c->pass == FORWARD ? 2 : c->pass == BACK_DATA ? 0 : 1;
    size_t count = lens[out] / number_size(c->type), from;
    struct job j = {.c = c,
                    .x = views[0],
                    .w = views[1],
                    .y = views[2],
                    .pixels =
                        (size_t)c->n * (size_t)c->out_h * (size_t)c->out_w,
                    .row = (size_t)c->c * (size_t)c->r * (size_t)c->s};

    if (c->workspace)
        runtime_soil(views[3], c->workspace);
    if (c->beta == 0)
        runtime_soil(views[out], lens[out]);
    j.rows = malloc(PIXELS * j.row * sizeof(float));
    j.result = calloc(count, sizeof(float));
    from = c->is_unordered ? seed % j.pixels : 0;
    stretch(&j, from, j.pixels);
    stretch(&j, 0, from);
    blend(c, views[out], j.result, count);
    free(j.result);
    free(j.rows);
    if (c->workspace)
        runtime_soil(views[3], c->workspace);
}
