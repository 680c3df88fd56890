/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_digest.c - norm, sums with random signs, some elements. */
#include "tests/trainer/trainer_digest.h"
#include "trainer/rng.h"

#include <jansson.h>

#include <check.h>
#include <math.h>

void digest_make(struct digest *d, const double *x, size_t n)
{
    uint64_t key = rng_key(TEST_KEY, 1);

    *d = (struct digest){0};
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = rng_bits(key, i);

        d->norm += x[i] * x[i];
        for (int j = 0; j < N_SIGNS; j++)
            d->sums[j] += bits >> j & 1 ? x[i] : -x[i];
    }
    d->norm = sqrt(d->norm);
    for (size_t k = 0; k < N_SOME; k++)
        d->some[k] = x[k * n / N_SOME];
}

void digest_read(struct digest *d, const json_t *list)
{
    ck_assert_uint_eq(json_array_size(list), 1 + N_SIGNS + N_SOME);
    d->norm = json_number_value(json_array_get(list, 0));
    for (size_t j = 0; j < N_SIGNS; j++)
        d->sums[j] = json_number_value(json_array_get(list, 1 + j));
    for (size_t k = 0; k < N_SOME; k++)
        d->some[k] = json_number_value(json_array_get(list, 1 + N_SIGNS + k));
}

double digest_error(const struct digest *is, const struct digest *want)
{
    double squares = 0, most = 0;

    for (int j = 0; j < N_SIGNS; j++)
        squares += pow(is->sums[j] - want->sums[j], 2);
    most = fmax(sqrt(squares / N_SIGNS), fabs(is->norm - want->norm));
    for (int k = 0; k < N_SOME; k++)
        most = fmax(most, fabs(is->some[k] - want->some[k]));
    return want->norm > 0 ? most / want->norm : most;
}
