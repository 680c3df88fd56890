/* SPDX-License-Identifier: BSD-3-Clause */
/* gemm.c - matrix products: both matrices are packed into panels, which a kernel of
 * ROWS x COLS results multiplies.
 *
 * Source: Goto and van de Geijn, ACM Trans. Math. Softw. 34(3), 2008.
 */
#include "tests/fake_cudnn/gemm.h"
#include "lib/type/half.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLS = 8, INNER = 256, STRIPE = 512, LANES = 4 };

size_t number_size(enum number type) { return type == BF16 ? 2 : 4; }

/* As cvt.rna.tf32: to nearest, ties away from zero. */
static float tf32_round(float x)
{
    uint32_t bits = f32_bits(x);

    if ((bits & 0x7f800000) == 0x7f800000)
        return x;
    return f32_from((bits + 0x1000) & ~0x1fffu);
}

float number_get(const void *at, enum number type, size_t i)
{
    float x;

    if (type == BF16)
        return bf16_widen(((const uint16_t *)at)[i]);
    memcpy(&x, (const float *)at + i, sizeof(x));
    return type == TF32 ? tf32_round(x) : x;
}

void numbers_get(float *to, const void *at, enum number type, size_t i,
                 size_t n)
{
    if (type == F32)
        memcpy(to, (const float *)at + i, n * sizeof(*to));
    else
        for (size_t k = 0; k < n; k++)
            to[k] = number_get(at, type, i + k);
}

void number_put(void *at, enum number type, size_t i, float x)
{
    if (type == BF16)
        ((uint16_t *)at)[i] = bf16_narrow(x);
    else
        ((float *)at)[i] = x;
}

/* ---- panels -------------------------------------------------------------- */

/* Pack n vectors of k elements, `width` side by side; what is missing of the last ones is
 * 0.  Vector i begins at m->at[i * along], its elements are `step` apart. */
struct pack {
    const struct matrix *m;
    size_t first, n, along; /* vectors */
    size_t begin, k, step;  /* elements of each */
    size_t width;
};

static void pack(float *to, const struct pack *p)
{
    for (size_t i = 0; i < p->n; i += p->width, to += p->width * p->k)
        for (size_t v = 0; v < p->width; v++) {
            size_t at = (p->first + i + v) * p->along + p->begin * p->step;

            for (size_t j = 0; j < p->k; j++)
                to[j * p->width + v] =
                    i + v < p->n
                        ? number_get(p->m->at, p->m->type, at + j * p->step)
                        : 0;
        }
}

/* ---- products ------------------------------------------------------------ */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
_Static_assert(COLS == 2 * LANES, "a row of results is two vectors");

/* acc = the product of a panel of each.  The sums stay in registers. */
static void multiply(float acc[ROWS][COLS], const float *a, const float *b,
                     size_t k)
{
    lanes sums[ROWS][2] = {{{0}}}, left, right;

    for (size_t j = 0; j < k; j++, a += ROWS, b += COLS) {
        memcpy(&left, b, sizeof(left));
        memcpy(&right, b + LANES, sizeof(right));
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            sums[r][0] += a[r] * left;
            sums[r][1] += a[r] * right;
        }
    }
    memcpy(acc, sums, sizeof(sums));
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Results of `rows` rows from `row` on and of all columns of a stripe. */
struct band {
    const struct gemm *g;
    size_t row, rows, column, columns, k;
    const float *a, *b;
};

static void add_band(const struct band *d)
{
    float acc[ROWS][COLS];

    for (size_t j = 0; j < d->columns; j += COLS) {
        size_t columns = least(COLS, d->columns - j);

        multiply(acc, d->a, d->b + j * d->k, d->k);
        for (size_t r = 0; r < d->rows; r++) {
            float *c = d->g->c + (d->row + r) * d->g->n + d->column + j;

            for (size_t i = 0; i < columns; i++)
                c[i] += acc[r][i];
        }
    }
}

/* Columns with those that fill the last panel. */
static size_t whole(size_t columns)
{
    return (columns + COLS - 1) / COLS * COLS;
}

/* All rows of one stripe of columns and one stretch of the inner length. */
static void add_stripe(const struct gemm *g, struct band *d, size_t begin,
                       float *room)
{
    struct pack b = {&g->b, d->column, d->columns, g->b.col,
                     begin, d->k,      g->b.row,   COLS};
    float *a_room = room + d->k * whole(d->columns);

    pack(room, &b);
    d->b = room;
    d->a = a_room;
    for (d->row = 0; d->row < g->m; d->row += ROWS) {
        struct pack a = {&g->a,    d->row, least(ROWS, g->m - d->row),
                         g->a.row, begin,  d->k,
                         g->a.col, ROWS};

        d->rows = a.n;
        pack(a_room, &a);
        add_band(d);
    }
}

void gemm_add(const struct gemm *g)
{
    float *room = malloc(sizeof(float) * least(INNER, g->k) *
                         (whole(least(STRIPE, g->n)) + ROWS));
    struct band d = {.g = g};

    for (d.column = 0; d.column < g->n; d.column += STRIPE) {
        d.columns = least(STRIPE, g->n - d.column);
        for (size_t begin = 0; begin < g->k; begin += INNER) {
            d.k = least(INNER, g->k - begin);
            add_stripe(g, &d, begin, room);
        }
    }
    free(room);
}
