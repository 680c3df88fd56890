/* SPDX-License-Identifier: BSD-3-Clause */
/* images.c - images in the GPU's memory, from which a kernel gathers batches.
 *
 * Images that are drawn when they are needed are drawn there, as pixels of which all are
 * gathered.
 */
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/error.h"
#include "trainer/synthetic.h"

#include <stdlib.h>
#include <string.h>

/* A set, of the GPU: pixels and labels, or what it is drawn with. */
struct held {
    unsigned char *pixels, *labels;
    float *patterns;
};

/* Which images a step or a gather() takes, in the GPU's memory. */
struct taken {
    struct gpu_room index;
    struct gpu_room pixels, labels, order; /* drawn images, and their index */
};

static struct {
    struct taken step, other;
    const struct images *images; /* of the step */
    struct gpu_room table;
    struct pixel_scale scale; /* what `table` holds */
    int has_scale;
} batch;

static int hold_patterns(struct held *h, const struct synthetic *s)
{
    size_t len = DATA_CLASSES * s->len * sizeof(*s->patterns);

    h->patterns = gpu_alloc(len);
    if (!h->patterns)
        return -1;
    gpu_write(h->patterns, s->patterns, len);
    return 0;
}

static int hold_pixels(struct held *h, const struct images *images)
{
    size_t len = images->n * images_len(images);

    h->pixels = gpu_alloc(len);
    h->labels = gpu_alloc(images->n);
    if (!h->pixels || !h->labels)
        return -1;
    gpu_write(h->pixels, images->pixels, len);
    gpu_write(h->labels, images->labels, images->n);
    return 0;
}

int compute_hold(struct images *images)
{
    struct held *h = images->held = calloc(1, sizeof(*h));

    if (!h || (images->drawn ? hold_patterns(h, images->drawn)
                             : hold_pixels(h, images)))
        return train_fail("the GPU has no memory for %zu images; give "
                          "--limit-train and --limit-test",
                          images->n);
    return gpu_well();
}

void compute_let_go(struct images *images)
{
    struct held *h = images->held;

    if (!h)
        return;
    gpu_release(h->pixels);
    gpu_release(h->labels);
    gpu_release(h->patterns);
    free(h);
    images->held = NULL;
}

static void release(const struct taken *taken)
{
    gpu_release(taken->index.at);
    gpu_release(taken->pixels.at);
    gpu_release(taken->labels.at);
    gpu_release(taken->order.at);
}

void compute_images_fini(void)
{
    release(&batch.step);
    release(&batch.other);
    gpu_release(batch.table.at);
    memset(&batch, 0, sizeof(batch));
}

/* ---- drawn images ---- */

static void paint(struct taken *taken, const struct images_pick *pick)
{
    const struct images *images = pick->images;
    const struct held *h = images->held;
    const struct synthetic *s = images->drawn;
    size_t n = (size_t)pick->n, len = images_len(images);
    struct train_span patterns, index, pixels, labels, order;

    if (gpu_room(&taken->pixels, n * len) || gpu_room(&taken->labels, n) ||
        gpu_room(&taken->order, n * sizeof(*pick->index)))
        return;
    patterns = floats(h->patterns, DATA_CLASSES * s->len);
    index = span(taken->index.at, n * sizeof(*pick->index));
    pixels = span(taken->pixels.at, n * len);
    labels = span(taken->labels.at, n);
    order = span(taken->order.at, n * sizeof(*pick->index));
    LAUNCH(paint_f32, n * len, ARG(patterns), ARG(index), ARG(pixels),
           ARG(labels), ARG(order), ARG(images->channels), ARG(images->height),
           ARG(images->width), ARG(s->key), ARG(s->first));
}

/* ---- batches ---- */

static int write_table(const struct images_pick *pick)
{
    if (batch.has_scale &&
        !memcmp(&batch.scale, pick->scale, sizeof(batch.scale)))
        return 0;
    if (gpu_room(&batch.table, sizeof(batch.scale)))
        return -1;
    batch.scale = *pick->scale;
    batch.has_scale = 1;
    gpu_write(batch.table.at, &batch.scale, sizeof(batch.scale));
    return 0;
}

static void gather(const struct taken *taken, const struct images_pick *pick,
                   size_t at, float *out, unsigned char *labels)
{
    const struct images *images = pick->images;
    const struct held *h = images->held;
    int is_drawn = images->drawn != NULL;
    size_t n = (size_t)pick->n, len = images_len(images);
    struct train_span pixels = is_drawn
                                   ? span(taken->pixels.at, taken->pixels.len)
                                   : span(h->pixels, images->n * len);
    struct train_span all_labels =
        is_drawn ? span(taken->labels.at, taken->labels.len)
                 : span(h->labels, images->n);
    const uint32_t *which = is_drawn ? taken->order.at : taken->index.at;
    struct train_span index, table, step = compute_step_numbers();
    struct train_span to = values(out, n * len), picked = span(labels, n);
    uint32_t augment = (uint32_t)pick->augment;
    uint64_t place = at;

    index = span(which + at, n * sizeof(*which));
    table = span(batch.table.at, sizeof(batch.scale));
    LAUNCH_VALUES(gather, n * len, ARG(pixels), ARG(all_labels), ARG(index),
                  ARG(table), ARG(to), ARG(picked), ARG(step),
                  ARG(images->channels), ARG(images->height),
                  ARG(images->width), ARG(augment), ARG(place));
}

/* Write down which images they are, and draw them if need be. */
static void take(struct taken *taken, const struct images_pick *pick)
{
    size_t len = (size_t)pick->n * sizeof(*pick->index);

    if (pick->n == 0 || write_table(pick) || gpu_room(&taken->index, len))
        return;
    gpu_write(taken->index.at, pick->index, len);
    if (pick->images->drawn)
        paint(taken, pick);
}

void compute_bring(const struct images_pick *step)
{
    batch.images = step->images;
    take(&batch.step, step);
}

void compute_gather(const struct images_pick *pick, float *out,
                    unsigned char *labels)
{
    int is_of_step = pick->images == batch.images;
    struct taken *taken = is_of_step ? &batch.step : &batch.other;
    size_t at = is_of_step ? compute_step_place(pick->first) : 0;

    if (!is_of_step)
        take(taken, pick);
    if (gpu_well())
        return;
    gather(taken, pick, at, out, labels);
}
