/* SPDX-License-Identifier: BSD-3-Clause */
/* synthetic.c - images that need no file: a seeded pattern for each class,
 * moved by up to two pixels, dimmed, and covered with noise.
 *
 * A pattern is coarse (7 x 7 cells of random brightness, interpolated), so that
 * convolutions have something to find.
 */
#include "trainer/data.h"
#include "trainer/error.h"
#include "trainer/rng.h"

#include <stdlib.h>

#define CELLS 7
#define SHIFT 2
#define NOISE 0.6f /* the width of the noise, in units of full brightness */

struct pattern {
    float value[DATA_SIDE + 2 * SHIFT][DATA_SIDE + 2 * SHIFT];
};

static float cell(uint64_t key, int y, int x)
{
    return rng_unit(key, (uint64_t)(y * (CELLS + 1) + x));
}

static void draw_pattern(struct pattern *p, uint64_t key)
{
    const int side = DATA_SIDE + 2 * SHIFT;

    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            float v = (float)(y * CELLS) / (float)side;
            float u = (float)(x * CELLS) / (float)side;
            int i = (int)v, j = (int)u;
            float top = cell(key, i, j) * (1 - (u - (float)j)) +
                        cell(key, i, j + 1) * (u - (float)j);
            float low = cell(key, i + 1, j) * (1 - (u - (float)j)) +
                        cell(key, i + 1, j + 1) * (u - (float)j);

            p->value[y][x] = top * (1 - (v - (float)i)) + low * (v - (float)i);
        }
}

static void draw_image(unsigned char *pixels, const struct pattern *p,
                       uint64_t key)
{
    int dy = (int)rng_below(key, 0, 2 * SHIFT + 1);
    int dx = (int)rng_below(key, 1, 2 * SHIFT + 1);
    float light = 0.6f + 0.4f * rng_unit(key, 2);

    for (int y = 0; y < DATA_SIDE; y++)
        for (int x = 0; x < DATA_SIDE; x++) {
            uint64_t i = 3 + (uint64_t)(y * DATA_SIDE + x);
            float v = light * p->value[y + dy][x + dx] +
                      NOISE * (rng_unit(key, i) - 0.5f);

            v = v < 0 ? 0 : v > 1 ? 1 : v;
            pixels[y * DATA_SIDE + x] = (unsigned char)(v * 255);
        }
}

int synthetic_make(struct images *images, size_t n, uint64_t seed,
                   uint64_t first)
{
    uint64_t key = rng_key(seed, RNG_SYNTHETIC);
    struct pattern *patterns = malloc(DATA_CLASSES * sizeof(*patterns));

    *images = (struct images){malloc(n * DATA_PIXELS), malloc(n), n};
    if (!patterns || !images->pixels || !images->labels) {
        free(patterns);
        images_fini(images);
        return train_fail("out of memory for %zu synthetic images; lower "
                          "--limit-train", n);
    }
    for (uint64_t c = 0; c < DATA_CLASSES; c++)
        draw_pattern(&patterns[c], rng_key(key, c));
    for (size_t i = 0; i < n; i++) {
        uint64_t mine = rng_key(key, DATA_CLASSES + first + i);
        unsigned char label = (unsigned char)((first + i) % DATA_CLASSES);

        images->labels[i] = label;
        draw_image(images->pixels + i * DATA_PIXELS, &patterns[label], mine);
    }
    free(patterns);
    return 0;
}
