/* SPDX-License-Identifier: BSD-3-Clause */
/* synthetic.h - images without a file, in memory or drawn one by one.
 *
 * A pixel depends only on the seed, on the number of its image and on its
 * place, so that both ways give the same images on every rank and in any order.
 */
#ifndef COLL_TRAINER_SYNTHETIC_H
#define COLL_TRAINER_SYNTHETIC_H

#include "trainer/data.h"
#include "trainer/synthetic_look.h"

/* Make images of images->channels, height and width: a prototype for each class,
 * moved, dimmed and noisy.
 *
 * Shapes:    n images; `first` counts images over train and test, so that they
 *            differ.
 * Result:    0, or -1 with train_error() set; *images is then empty.  The same seed
 *            gives the same images.
 * Ownership: end *images by images_fini().
 */
int synthetic_make(struct images *images, size_t n, uint64_t seed,
                   uint64_t first);

/* As synthetic_make(), without pixels and labels: images->drawn has what is needed to
 * draw each of them.
 *
 * Cost:      memory for the prototypes only, whatever n is.
 */
int synthetic_promise(struct images *images, size_t n, uint64_t seed,
                      uint64_t first);

void synthetic_free(struct synthetic *drawn); /* NULL is none */

/* One image, ready to be drawn. */
struct synthetic_image {
    const struct images *of;
    const float *pattern; /* [channels][height + rim][width + rim], from here on */
    struct synthetic_look look;
};

/* Return the at-th image; images->drawn must outlive it. */
struct synthetic_image synthetic_image(const struct images *images, size_t at);

/* Return its pixel. */
unsigned char synthetic_pixel(const struct synthetic_image *image, int channel,
                              int y, int x);

#endif
