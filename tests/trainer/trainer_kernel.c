/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_kernel.c - a kernel is run, and what it leaves is compared. */
#include "tests/trainer/trainer_kernel.h"
#include "lib/type/half.h"
#include "tests/fake_cuda/kernels.h"
#include "trainer/cuda/kernels.h"
#include "trainer/rng.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

/* The buffers of a run; those that are one have the first one's memory. */
struct buffers {
    const char *entry;
    enum kernel_type type;
    const struct kernel_arg *args;
    size_t n;
    size_t len[MOST];
    int first[MOST];
    unsigned char *memory[MOST];
};

uint64_t kernel_real(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

uint64_t kernel_double(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* ---- memory -------------------------------------------------------------------- */

static int is_narrow(const struct buffers *b, size_t i)
{
    return b->args[i].is_values && b->type == BF16;
}

static int is_first(const struct buffers *b, size_t i)
{
    return b->args[i].letter == 's' && b->len[i] && b->first[i] == (int)i;
}

/* Find out which buffers there are. */
static void lay_out(struct buffers *b)
{
    for (size_t i = 0; i < b->n; i++) {
        b->len[i] = b->args[i].len / (is_narrow(b, i) ? 2 : 1);
        b->first[i] = (int)i;
        for (size_t k = 0; k < i; k++)
            if (b->args[i].at && b->args[k].at == b->args[i].at)
                b->first[i] = b->first[k];
    }
}

/* Copy what is here to memory that begins `shift` elements behind 16 bytes and ends with
 * the buffer. */
static void put(struct buffers *b, unsigned shift)
{
    for (size_t i = 0; i < b->n; i++) {
        size_t skip = shift * fake_kernel_item(b->entry, (int)i);
        const float *values = b->args[i].at;
        uint16_t *narrow;

        if (!is_first(b, i))
            continue;
        b->memory[i] = malloc(skip + b->len[i]);
        ck_assert_ptr_nonnull(b->memory[i]);
        if (!is_narrow(b, i)) {
            memcpy(b->memory[i] + skip, b->args[i].at, b->len[i]);
            continue;
        }
        narrow = (uint16_t *)(void *)(b->memory[i] + skip);
        for (size_t k = 0; k < b->len[i] / 2; k++)
            narrow[k] = bf16_narrow(values[k]);
    }
}

/* Copy the result back. */
static void take(struct buffers *b, unsigned shift)
{
    for (size_t i = 0; i < b->n; i++) {
        size_t skip = shift * fake_kernel_item(b->entry, (int)i);
        float *values = b->args[i].at;
        const uint16_t *narrow;

        if (!is_first(b, i))
            continue;
        if (!is_narrow(b, i)) {
            memcpy(b->args[i].at, b->memory[i] + skip, b->len[i]);
            continue;
        }
        narrow = (const uint16_t *)(void *)(b->memory[i] + skip);
        for (size_t k = 0; k < b->len[i] / 2; k++)
            values[k] = bf16_widen(narrow[k]);
    }
}

static void release(struct buffers *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (is_first(b, i))
            free(b->memory[i]);
}

/* ---- runs ---------------------------------------------------------------------- */

struct grid {
    unsigned blocks, threads, shift;
    int is_backwards;
};

static void launch(struct buffers *b, const struct grid *grid)
{
    struct train_span spans[MOST];
    uint64_t values[MOST];
    void *params[MOST];

    for (size_t i = 0; i < b->n; i++) {
        size_t skip = grid->shift * fake_kernel_item(b->entry, (int)i);

        values[i] = b->args[i].value;
        spans[i].len = b->len[i];
        spans[i].at = 1; /* of no use */
        if (b->args[i].letter == 's' && b->len[i])
            spans[i].at = (uint64_t)(b->memory[b->first[i]] + skip);
        params[i] =
            b->args[i].letter == 's' ? (void *)&spans[i] : (void *)&values[i];
    }
    ck_assert_int_eq(fake_kernel_run(b->entry, grid->blocks, grid->threads,
                                     params, grid->is_backwards),
                     0);
}

static void compare(const struct buffers *is, unsigned shift,
                    const struct buffers *want)
{
    for (size_t i = 0; i < is->n; i++)
        if (is_first(is, i))
            ck_assert_msg(
                !memcmp(is->memory[i] +
                            shift * fake_kernel_item(is->entry, (int)i),
                        want->memory[i], is->len[i]),
                "%s: another grid leaves another parameter %zu", is->entry, i);
}

void kernel_run(const char *name, enum kernel_type type,
                const struct kernel_arg *args, size_t n)
{
    static const char *const types[] = {"f32", "bf16", "f16", "f64"};
    static const struct grid grids[] = {
        {1, 1, 0, 0},  {1, 1, 1, 0}, {1, 7, 0, 1},   {3, 32, 0, 1},
        {3, 32, 1, 1}, {2, 5, 1, 0}, {16, 64, 0, 0}, {9, 100, 1, 1},
    };
    char entry[64];
    struct buffers first, next;

    snprintf(entry, sizeof(entry), "train_%s_%s", name, types[type]);
    ck_assert_msg(fake_kernel_params(entry) != NULL, "%s", entry);
    ck_assert_uint_eq(strlen(fake_kernel_params(entry)), n);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(fake_kernel_params(entry)[i], args[i].letter);
    first =
        (struct buffers){.entry = entry, .type = type, .args = args, .n = n};
    lay_out(&first);
    next = first;
    put(&first, 0);
    launch(&first, &grids[0]);
    for (size_t g = 1; g < sizeof(grids) / sizeof(grids[0]); g++) {
        put(&next, grids[g].shift);
        launch(&next, &grids[g]);
        compare(&next, grids[g].shift, &first);
        release(&next);
    }
    take(&first, 0);
    release(&first);
}

/* ---- values -------------------------------------------------------------------- */

float *kernel_zeros(size_t n)
{
    float *values = calloc(n, sizeof(*values));

    ck_assert_ptr_nonnull(values);
    return values;
}

float *kernel_values(size_t n, uint64_t seed, enum kernel_type type)
{
    float *values = kernel_zeros(n);

    for (size_t i = 0; i < n; i++)
        values[i] = 2 * rng_unit(seed, i) - 1;
    kernel_round(values, n, type);
    return values;
}

void kernel_round(float *values, size_t n, enum kernel_type type)
{
    for (size_t i = 0; type == BF16 && i < n; i++)
        values[i] = bf16_widen(bf16_narrow(values[i]));
}

static int are_same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

void kernel_same(const float *is, const float *want, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(are_same(is[i], want[i]), "%s[%zu] is %.9g and not %.9g",
                      what, i, (double)is[i], (double)want[i]);
}

void kernel_near(const float *is, const float *want, size_t n,
                 enum kernel_type type, const char *what)
{
    double most = type == BF16 ? 0x1p-8 : 1e-5;

    for (size_t i = 0; i < n; i++)
        ck_assert_msg(are_same(is[i], want[i]) ||
                          fabs((double)is[i] - (double)want[i]) <=
                              most * (0.5 + fabs((double)want[i])),
                      "%s[%zu] is %.9g and not %.9g", what, i, (double)is[i],
                      (double)want[i]);
}
