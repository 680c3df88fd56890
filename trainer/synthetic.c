/* SPDX-License-Identifier: BSD-3-Clause */
/* synthetic.c - images without a file: a pattern for each class, moved by up to
 * two pixels, dimmed, and covered with noise.
 *
 * A pattern is coarse (7 x 7 cells of random brightness, interpolated, a set
 * for each channel), so that convolutions can find it.
 */
#include "trainer/synthetic.h"
#include "trainer/error.h"

#include <stdlib.h>

#define CELLS 7
#define SHIFT SYNTHETIC_SHIFT

/* What a class looks like, with a rim so that it can move. */
struct canvas {
    int height, width;
    float *value; /* [channels][height][width] */
};

static float cell(uint64_t key, int y, int x)
{
    return rng_unit(key, (uint64_t)(y * (CELLS + 1) + x));
}

/* Return the brightness at a place, counted in cells. */
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

/* ---- patterns ---- */

static int make_patterns(struct synthetic *s, const struct images *images)
{
    struct canvas p = {images->height + 2 * SHIFT, images->width + 2 * SHIFT,
                       NULL};
    size_t plane = (size_t)p.height * (size_t)p.width;

    s->len = plane * (size_t)images->channels;
    s->patterns = malloc(DATA_CLASSES * s->len * sizeof(float));
    if (!s->patterns)
        return -1;
    for (uint64_t k = 0; k < DATA_CLASSES; k++)
        for (size_t c = 0; c < (size_t)images->channels; c++) {
            uint64_t key = rng_key(s->key, k);

            draw_pattern(&p, s->patterns + k * s->len + c * plane,
                         c ? rng_key(key, c) : key);
        }
    return 0;
}

void synthetic_free(struct synthetic *drawn)
{
    if (drawn)
        free(drawn->patterns);
    free(drawn);
}

int synthetic_promise(struct images *images, size_t n, uint64_t seed,
                      uint64_t first)
{
    struct synthetic *s = calloc(1, sizeof(*s));

    if (s) {
        s->key = rng_key(seed, RNG_SYNTHETIC);
        s->first = first;
    }
    if (!s || make_patterns(s, images)) {
        synthetic_free(s);
        *images = (struct images){0};
        return train_fail("out of memory for the patterns of synthetic images; "
                          "take a smaller --model");
    }
    images->drawn = s;
    images->n = n;
    return 0;
}

/* ---- images ---- */

struct synthetic_image synthetic_image(const struct images *images, size_t at)
{
    const struct synthetic *s = images->drawn;
    struct synthetic_look look = synthetic_look_of(s->key, s->first + at);
    size_t moved = (size_t)look.down * ((size_t)images->width + 2 * SHIFT) +
                   (size_t)look.right;

    return (struct synthetic_image){
        .of = images,
        .pattern = s->patterns + look.label * s->len + moved,
        .look = look,
    };
}

unsigned char synthetic_pixel(const struct synthetic_image *image, int channel,
                              int y, int x)
{
    int height = image->of->height, width = image->of->width;
    int row = channel * (height + 2 * SHIFT) + y;
    int at = (channel * height + y) * width + x;

    return synthetic_shade(&image->look,
                           image->pattern[row * (width + 2 * SHIFT) + x],
                           (uint64_t)at);
}

static void draw_image(const struct synthetic_image *image,
                       unsigned char *pixels)
{
    for (int c = 0; c < image->of->channels; c++)
        for (int y = 0; y < image->of->height; y++)
            for (int x = 0; x < image->of->width; x++)
                *pixels++ = synthetic_pixel(image, c, y, x);
}

int synthetic_make(struct images *images, size_t n, uint64_t seed,
                   uint64_t first)
{
    size_t len = images_len(images);

    if (synthetic_promise(images, n, seed, first))
        return -1;
    images->pixels = malloc(n * len);
    images->labels = malloc(n);
    if (!images->pixels || !images->labels) {
        images_fini(images);
        return train_fail("out of memory for %zu synthetic images; lower "
                          "--limit-train", n);
    }
    for (size_t i = 0; i < n; i++) {
        struct synthetic_image image = synthetic_image(images, i);

        images->labels[i] = image.look.label;
        draw_image(&image, images->pixels + i * len);
    }
    synthetic_free(images->drawn);
    images->drawn = NULL;
    return 0;
}
