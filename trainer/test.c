/* SPDX-License-Identifier: BSD-3-Clause */
/* test.c - the test after an epoch: each rank tests its share of the images,
 * each image counts once, and the ranks compare their parameters. */
#include "trainer/ddp.h"
#include "trainer/device.h"
#include "trainer/epoch.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/smaller.h"
#include "trainer/train.h"
#include "trainer/train_state.h"
#include "trainer/watch.h"

#include <string.h>
#include <zlib.h>

/* Test n images from `first` on. */
static int test_chunk(struct trainer *t, size_t first, int n,
                      struct model_score *total)
{
    struct pass pass = {.is_training = 0};
    const struct images_pick pick = {.images = &t->data.test,
                                     .index = t->test.index,
                                     .n = n,
                                     .scale = &t->scale};
    struct model_score *at = &t->step.record->score, score;

    for (int i = 0; i < n; i++)
        t->test.index[i] = (uint32_t)(first + (size_t)i);
    t->device->images.gather(&pick, model_input(t->eval), t->test.labels);
    t->device->zero(at, sizeof(*at));
    if (model_forward(t->eval, &pass))
        return -1;
    model_loss(t->eval, t->test.labels, n, 1, at);
    if (t->device->read(&score, at, sizeof(score)) ||
        watch_pass(t, t->eval, n, score.loss))
        return -1;
    total->loss += score.loss;
    total->n_right += score.n_right;
    return 0;
}

static int test_share(struct trainer *t, struct model_score *total)
{
    size_t n = t->data.test.n, p = (size_t)t->ddp->size;
    size_t at = n * (size_t)t->ddp->rank / p;
    size_t end = n * ((size_t)t->ddp->rank + 1) / p;
    size_t chunk = (size_t)model_chunk(t->eval);

    for (; at < end; at += chunk)
        if (test_chunk(t, at, (int)smaller(end - at, chunk), total))
            return -1;
    return 0;
}

/* Set t->param_crc to the check sum of the parameters. */
static int sum_params(struct trainer *t)
{
    const float *params = model_params(t->model);
    size_t n = model_n_params(t->model);
    float piece[DEVICE_PIECE];
    unsigned long crc = 0;

    for (size_t at = 0; at < n; at += DEVICE_PIECE) {
        size_t len = smaller(n - at, DEVICE_PIECE) * sizeof(*piece);

        if (t->device->read(piece, params + at, len))
            return -1;
        crc = crc32_z(crc, (const unsigned char *)piece, len);
    }
    t->param_crc = (uint32_t)crc;
    return 0;
}

/* Every rank must hold the same bits: the maxima of x and of -x show it. */
static int check_params(struct trainer *t, double *seconds)
{
    double crc, ends[3];

    if (sum_params(t))
        return -1;
    crc = (double)t->param_crc;
    memcpy(ends, (double[]){crc, -crc, *seconds}, sizeof(ends));
    if (ddp_max(t->ddp, ends, 3))
        return -1;
    *seconds = ends[2];
    if (ends[0] + ends[1] > 0)
        return train_fail("after epoch %llu the ranks hold different "
                          "parameters; run the same program and flags on the "
                          "same kind of processor everywhere",
                          (unsigned long long)t->epoch);
    return 0;
}

int trainer_test(struct trainer *t, struct epoch_stats *stats)
{
    double p = t->ddp->size, n_test = (double)t->data.test.n;
    double n;
    struct model_score test = {0};
    double sums[7];

    if (trainer__share_running(t, 0) || test_share(t, &test))
        return -1;
    memcpy(sums,
           (double[]){stats->loss, stats->accuracy, test.loss, test.n_right,
                      stats->comm_seconds, stats->data_seconds,
                      (double)stats->n_images},
           sizeof(sums));
    if (ddp_sum(t->ddp, sums, 7) || check_params(t, &stats->seconds))
        return -1;
    n = sums[6];
    stats->loss = n > 0 ? sums[0] / n : 0;
    stats->accuracy = n > 0 ? sums[1] / n : 0;
    stats->test_loss = sums[2] / n_test;
    stats->test_accuracy = sums[3] / n_test;
    t->test.has_reached =
        t->args->target_acc > 0 && stats->test_accuracy >= t->args->target_acc;
    stats->comm_seconds = sums[4] / p;
    stats->data_seconds = sums[5] / p;
    stats->images_per_s = stats->seconds > 0 ? n / stats->seconds : 0;
    return watch_epoch(t, stats->test_loss);
}
