/* SPDX-License-Identifier: BSD-3-Clause */
/* images.c - images in the GPU's memory, from which a kernel gathers batches.
 *
 * Images that are drawn when they are needed are gathered on the host, and copied.
 */
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/error.h"

#include <stdlib.h>
#include <string.h>

/* A set's pixels and labels, of the GPU. */
struct held {
    unsigned char *pixels, *labels;
};

/* Which images a step or a gather() takes, in the GPU's memory. */
struct taken {
    struct gpu_room index;
    struct gpu_room drawn, labels; /* instead: images that were drawn */
};

static struct {
    struct taken step, other;
    const struct images *images; /* of the step */
    struct gpu_room table;
    struct pixel_scale scale; /* what `table` holds */
    int has_scale;
    float *drawn;          /* the host's: images that were drawn, */
    unsigned char *labels; /* and their labels */
    size_t n_drawn, n_labels;
} batch;

int compute_hold(struct images *images)
{
    size_t len = images->n * images_len(images);
    struct held *h;

    if (images->drawn)
        return 0;
    h = calloc(1, sizeof(*h));
    if (h) {
        images->held = h;
        h->pixels = gpu_alloc(len);
        h->labels = gpu_alloc(images->n);
    }
    if (!h || !h->pixels || !h->labels)
        return train_fail("the GPU has no memory for %zu images; give "
                          "--limit-train and --limit-test",
                          images->n);
    gpu_write(h->pixels, images->pixels, len);
    gpu_write(h->labels, images->labels, images->n);
    return gpu_well();
}

void compute_let_go(struct images *images)
{
    struct held *h = images->held;

    if (!h)
        return;
    gpu_release(h->pixels);
    gpu_release(h->labels);
    free(h);
    images->held = NULL;
}

static void release(const struct taken *taken)
{
    gpu_release(taken->index.at);
    gpu_release(taken->drawn.at);
    gpu_release(taken->labels.at);
}

void compute_images_fini(void)
{
    release(&batch.step);
    release(&batch.other);
    gpu_release(batch.table.at);
    free(batch.drawn);
    free(batch.labels);
    memset(&batch, 0, sizeof(batch));
}

/* ---- drawn images ---- */

/* Make sure that there is memory on the host for n images of so many values. */
static int have_memory(size_t n, size_t n_values)
{
    if (batch.n_drawn < n * n_values) {
        free(batch.drawn);
        batch.drawn = malloc(n * n_values * sizeof(*batch.drawn));
        batch.n_drawn = batch.drawn ? n * n_values : 0;
    }
    if (batch.n_labels < n) {
        free(batch.labels);
        batch.labels = malloc(n);
        batch.n_labels = batch.labels ? n : 0;
    }
    return batch.drawn && batch.labels ? 0 : -1;
}

static void draw(struct taken *taken, const struct images_pick *pick)
{
    size_t n = (size_t)pick->n, len = images_len(pick->images);
    size_t bytes = n * len * sizeof(float);

    if (gpu_room(&taken->drawn, bytes) || gpu_room(&taken->labels, n))
        return;
    if (have_memory(n, len)) {
        gpu_note(CUDA_ERROR_OUT_OF_MEMORY, "memory of the host for images");
        return;
    }
    images_gather(pick, batch.drawn, batch.labels);
    gpu_write(taken->drawn.at, batch.drawn, bytes);
    gpu_write(taken->labels.at, batch.labels, n);
}

/* Copy them from `at` on. */
static void copy_drawn(const struct taken *taken,
                       const struct images_pick *pick, size_t at, float *out,
                       unsigned char *labels)
{
    const float *drawn = taken->drawn.at;
    const unsigned char *of = taken->labels.at;
    size_t n = (size_t)pick->n, len = images_len(pick->images);

    drawn += at * len;
    if (gpu_has_bf16())
        compute_pack(WIRE_BF16, drawn, (uint16_t *)out, n * len);
    else
        gpu_copy(out, drawn, n * len * sizeof(*out));
    gpu_copy(labels, of + at, n);
}

/* ---- images that are held ---- */

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
    size_t n = (size_t)pick->n, len = images_len(images);
    struct train_span pixels = span(h->pixels, images->n * len);
    struct train_span all_labels = span(h->labels, images->n);
    struct train_span index, table, step = compute_step_numbers();
    struct train_span to = values(out, n * len), picked = span(labels, n);
    uint32_t augment = (uint32_t)pick->augment;
    uint64_t place = at;

    index = span((uint32_t *)taken->index.at + at, n * sizeof(*pick->index));
    table = span(batch.table.at, sizeof(batch.scale));
    LAUNCH_VALUES(gather, n * len, ARG(pixels), ARG(all_labels), ARG(index),
                  ARG(table), ARG(to), ARG(picked), ARG(step),
                  ARG(images->channels), ARG(images->height),
                  ARG(images->width), ARG(augment), ARG(place));
}

/* ---- both ---- */

/* Draw the images, or write down which they are. */
static void take(struct taken *taken, const struct images_pick *pick)
{
    size_t len = (size_t)pick->n * sizeof(*pick->index);

    if (pick->n == 0)
        return;
    if (pick->images->drawn)
        draw(taken, pick);
    else if (!write_table(pick) && !gpu_room(&taken->index, len))
        gpu_write(taken->index.at, pick->index, len);
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
    (pick->images->drawn ? copy_drawn : gather)(taken, pick, at, out, labels);
}
