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

/* What one gather() needs. */
static struct {
    /* of the GPU; wide: images that were drawn, as floats */
    struct gpu_room index, table, wide;
    struct pixel_scale scale;     /* what `table` holds */
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

void compute_images_fini(void)
{
    gpu_release(batch.index.at);
    gpu_release(batch.table.at);
    gpu_release(batch.wide.at);
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

/* Write n floats of the host to values. */
static void write_values(float *out, const float *from, size_t n)
{
    if (!gpu_has_bf16()) {
        gpu_write(out, from, n * sizeof(*from));
        return;
    }
    if (gpu_room(&batch.wide, n * sizeof(*from)))
        return;
    gpu_write(batch.wide.at, from, n * sizeof(*from));
    compute_pack(WIRE_BF16, batch.wide.at, (uint16_t *)out, n);
}

static void draw(const struct images_pick *pick, float *out,
                 unsigned char *labels)
{
    size_t n = (size_t)pick->n, len = images_len(pick->images);

    if (have_memory(n, len)) {
        gpu_note(CUDA_ERROR_OUT_OF_MEMORY, "memory of the host for images");
        return;
    }
    images_gather(pick, batch.drawn, batch.labels);
    write_values(out, batch.drawn, n * len);
    gpu_write(labels, batch.labels, n);
}

/* ---- images that are held ---- */

/* Bring what the kernel looks up into the GPU's memory. */
static int write_tables(const struct images_pick *pick)
{
    size_t len = (size_t)pick->n * sizeof(*pick->index);

    if (gpu_room(&batch.index, len) ||
        gpu_room(&batch.table, sizeof(batch.scale)))
        return -1;
    gpu_write(batch.index.at, pick->index, len);
    if (batch.has_scale &&
        !memcmp(&batch.scale, pick->scale, sizeof(batch.scale)))
        return 0;
    batch.scale = *pick->scale;
    batch.has_scale = 1;
    gpu_write(batch.table.at, &batch.scale, sizeof(batch.scale));
    return 0;
}

void compute_gather(const struct images_pick *pick, float *out,
                    unsigned char *labels)
{
    const struct images *images = pick->images;
    const struct held *h = images->held;
    size_t n = (size_t)pick->n, len = images_len(images);
    struct train_span pixels, all_labels, index, table;
    struct train_span to = values(out, n * len), picked = span(labels, n);
    uint32_t augment = (uint32_t)pick->augment;
    uint64_t first = pick->first;

    if (images->drawn) {
        draw(pick, out, labels);
        return;
    }
    if (write_tables(pick))
        return;
    pixels = span(h->pixels, images->n * len);
    all_labels = span(h->labels, images->n);
    index = span(batch.index.at, n * sizeof(*pick->index));
    table = span(batch.table.at, sizeof(batch.scale));
    LAUNCH_VALUES(gather, n * len, ARG(pixels), ARG(all_labels), ARG(index),
                  ARG(table), ARG(to), ARG(picked), ARG(images->channels),
                  ARG(images->height), ARG(images->width), ARG(augment),
                  ARG(pick->key), ARG(first));
}
