/* SPDX-License-Identifier: BSD-3-Clause */
/* data.h - labelled images, in memory or drawn when they are needed. */
#ifndef COLL_TRAINER_DATA_H
#define COLL_TRAINER_DATA_H

#include <stddef.h>
#include <stdint.h>

#define DATA_CLASSES 10

struct synthetic; /* see synthetic.h */

struct images {
    unsigned char *pixels; /* [n][channels][height][width] */
    unsigned char *labels; /* [n], below DATA_CLASSES */
    size_t n;
    int channels, height, width;
    struct synthetic *drawn; /* if not NULL, images are drawn, and pixels and
                              * labels are NULL */
    void *held;              /* a device's own copy (device.h), or NULL */
};

/* Return the bytes of one image. */
static inline size_t images_len(const struct images *images)
{
    return (size_t)images->channels * (size_t)images->height *
           (size_t)images->width;
}

struct dataset {
    char where[512]; /* the folder it was read from, or "made up" */
    struct images train, test;
    void *map; /* the memory that holds both sets; NULL: each is allocated by
                * itself */
    size_t map_len;
};

struct data_config {
    const char *name; /* as --dataset has it */
    const char *dir;  /* --data-dir, or "" */
    size_t limit_train, limit_test; /* 0: all */
    uint64_t seed;                  /* of synthetic */
    int channels, height, width;    /* of synthetic */
};

/* Load both sets.
 *
 * Result:    0, or -1 with train_error() naming the file that is missing,
 *            foreign or cut off; *d is then empty.
 * Ownership: end *d by dataset_fini().
 * See:       choose_folder() in data.c for where it looks.
 */
int dataset_load(struct dataset *d, const struct data_config *config);
/* Do the same on all ranks at once, with one copy for all ranks of a host.
 *
 * Shapes:    status: not 0 when this rank has already failed and calls only so
 *            that the others need not wait.
 * Result:    0, or -1 with train_error() set.  If a host's first rank fails,
 *            the others of that host fail because of it.
 */
struct ddp;
int dataset_load_shared(struct dataset *d, const struct data_config *config,
                        struct ddp *ddp, int status);

/* Return a number that other images have another one of, with high probability.  It
 * looks at the labels and a few pixels. */
uint64_t dataset_digest(const struct dataset *d);

void dataset_fini(struct dataset *d);

/* Read n labelled images from two IDX files, plain or gzipped.
 *
 * Result:    0, or -1 with train_error() set; *images is then empty.
 * Ownership: free pixels and labels by images_fini().
 * Cost:      memory for the images; never more than the files could hold.
 * Source:    the format is described at the home of MNIST, by LeCun et al.
 */
int idx_load(struct images *images, const char *pixels_path,
             const char *labels_path);
/* Read labelled images from CIFAR-10's binary files, one after the other.
 *
 * Result:    as idx_load().
 * Source:    the format is described at the home of CIFAR-10, A. Krizhevsky.
 */
int cifar_load(struct images *images, const char *const *paths, int n_paths);

void images_fini(struct images *images);

/* Keep the first `limit` images; 0 keeps all. */
void images_limit(struct images *images, size_t limit);

/* The number that each pixel value becomes. */
struct pixel_scale {
    float value[256];
};

/* Set scale to value / 255, or to mean 0 and standard deviation 1 over the
 * images.  Of drawn images only the first 2^24 pixels are looked at: they are
 * all alike. */
void pixel_scale_unit(struct pixel_scale *scale);
void pixel_scale_meanstd(struct pixel_scale *scale,
                         const struct images *images);

#define AUGMENT_PAD 4 /* pixels on each side */

enum augment { AUGMENT_NONE, AUGMENT_FLIP_CROP };

/* Which images to copy, and how to change their pixels.
 *
 * AUGMENT_FLIP_CROP: give each image a black border of AUGMENT_PAD pixels, cut
 * an image of the old size out of it at one of 9 x 9 places, and mirror half of
 * them.  The random numbers depend only on the key and on the image's place.
 */
struct images_pick {
    const struct images *images;
    const uint32_t *index; /* [n] */
    int n;
    const struct pixel_scale *scale;
    enum augment augment;
    uint64_t key; /* of this step's random numbers */
    size_t
        first; /* place of the first image in the global batch */
};

/* Copy these images, scaled, as [height][width][channels], and their labels. */
void images_gather(const struct images_pick *pick, float *out,
                   unsigned char *labels);

#endif
