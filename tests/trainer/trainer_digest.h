/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_digest.h - a few numbers that stand for a vector, as
 * tests/trainer/record_torch.py makes them of PyTorch's. */
#ifndef COLL_TESTS_TRAINER_DIGEST_H
#define COLL_TESTS_TRAINER_DIGEST_H

#include <stddef.h>

#define TEST_KEY 1000 /* these as in record_torch.py */
#define N_SIGNS 16
#define N_SOME 4

struct json_t;

/* One layer's weights or biases, against what was recorded of them. */
struct digest {
    double norm, sums[N_SIGNS], some[N_SOME];
};

void digest_make(struct digest *d, const double *x, size_t n);
void digest_read(struct digest *d, const struct json_t *list);

/* Return the norm of the difference of the two vectors, over the norm of the
 * recorded one: as sums with random signs estimate it, or as a single element
 * shows that it must be at least. */
double digest_error(const struct digest *is, const struct digest *want);

#endif
