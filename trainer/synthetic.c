/* SPDX-License-Identifier: BSD-3-Clause */
/* synthetic.c - images that need no file: a seeded pattern for each class,
 * moved by up to two pixels, dimmed, and covered with noise.
 *
 * A pattern is coarse (7 x 7 cells of random brightness, interpolated, a set for
 * each channel), so that convolutions have something to find.
 */
#include "trainer/data.h"
#include "trainer/error.h"
#include "trainer/rng.h"

#include <stdlib.h>

#define CELLS 7
#define SHIFT 2
#define NOISE 0.6f /* the width of the noise, in units of full brightness */

/* What a class looks like, with a rim to move in. */
struct canvas {
    int height, width;
    float *value; /* [channels][height][width] */
};

static float cell(uint64_t key, int y, int x)
{
    return rng_unit(key, (uint64_t)(y * (CELLS + 1) + x));
}

/* Return the brightness at v, u, in cells. */
static float between_cells(uint64_t key, float v, float u)
{
    int i = (int)v, j = (int)u;
    float top = cell(key, i, j) * (1 - (u - (float)j)) +
                cell(key, i, j + 1) * (u - (float)j);
    float low = cell(key, i + 1, j) * (1 - (u - (float)j)) +
                cell(key, i + 1, j + 1) * (u - (float)j);

    return top * (1 - (v - (float)i)) + low * (v - (float)i);
}

static void draw_pattern(const struct canvas *p, float *value, uint64_t key)
{
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            *value++ = between_cells(key, (float)(y * CELLS) / (float)p->height,
                                     (float)(x * CELLS) / (float)p->width);
}

static void draw_image(unsigned char *pixels, const struct images *images,
                       const float *pattern, uint64_t key)
{
    int dy = (int)rng_below(key, 0, 2 * SHIFT + 1);
    int dx = (int)rng_below(key, 1, 2 * SHIFT + 1);
    float light = 0.6f + 0.4f * rng_unit(key, 2);
    int width = images->width + 2 * SHIFT;
    int height = images->height + 2 * SHIFT;
    uint64_t i = 3;

    for (int c = 0; c < images->channels; c++, pattern += height * width)
        for (int y = 0; y < images->height; y++)
            for (int x = 0; x < images->width; x++, i++) {
                float v = light * pattern[(y + dy) * width + x + dx] +
                          NOISE * (rng_unit(key, i) - 0.5f);

                v = v < 0 ? 0 : v > 1 ? 1 : v;
                *pixels++ = (unsigned char)(v * 255);
            }
}

/* Draw the classes' patterns, [DATA_CLASSES][channels][height][width]. */
static float *make_patterns(const struct images *images, uint64_t key,
                            size_t *len)
{
    struct canvas p = {images->height + 2 * SHIFT, images->width + 2 * SHIFT,
                       NULL};
    size_t plane = (size_t)p.height * (size_t)p.width;

    *len = plane * (size_t)images->channels;
    p.value = malloc(DATA_CLASSES * *len * sizeof(float));
    for (uint64_t k = 0; p.value && k < DATA_CLASSES; k++)
        for (size_t c = 0; c < (size_t)images->channels; c++)
            draw_pattern(&p, p.value + k * *len + c * plane,
                         c ? rng_key(rng_key(key, k), c) : rng_key(key, k));
    return p.value;
}

int synthetic_make(struct images *images, size_t n, uint64_t seed,
                   uint64_t first)
{
    uint64_t key = rng_key(seed, RNG_SYNTHETIC);
    size_t len, one = images_len(images);
    float *patterns = make_patterns(images, key, &len);

    images->n = n;
    images->pixels = malloc(n * one);
    images->labels = malloc(n);
    if (!patterns || !images->pixels || !images->labels) {
        free(patterns);
        images_fini(images);
        return train_fail("out of memory for %zu synthetic images; lower "
                          "--limit-train", n);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t mine = rng_key(key, DATA_CLASSES + first + i);
        unsigned char label = (unsigned char)((first + i) % DATA_CLASSES);

        images->labels[i] = label;
        draw_image(images->pixels + i * one, images, patterns + label * len,
                   mine);
    }
    free(patterns);
    return 0;
}
