/* SPDX-License-Identifier: BSD-3-Clause */
/* cifar.c - CIFAR-10's binary files: records of a label and 3 x 32 x 32 bytes,
 * channel by channel.  A training set is data_batch_1 to data_batch_5; later
 * ones may be missing. */
#include "trainer/data.h"
#include "trainer/data_file.h"
#include "trainer/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 32
#define CHANNELS 3
#define PIXELS (CHANNELS * SIDE * SIDE)
#define STEP 10000 /* images that memory grows by: one file as it is
                    * published */

static int grow(struct images *images, size_t *room)
{
    size_t n = *room + STEP;
    unsigned char *pixels = realloc(images->pixels, n * PIXELS);
    unsigned char *labels;

    if (pixels)
        images->pixels = pixels;
    labels = pixels ? realloc(images->labels, n) : NULL;
    if (!labels)
        return train_fail("out of memory for %zu images of CIFAR-10; use fewer "
                          "ranks on this machine",
                          n);
    images->labels = labels;
    *room = n;
    return 0;
}

static int read_records(struct data_file *f, struct images *images,
                        size_t *room)
{
    unsigned char record[1 + PIXELS];
    int more;

    while ((more = data_file_next(f, record, sizeof(record))) > 0) {
        if (record[0] >= DATA_CLASSES)
            return train_refuse("%s: label %zu is %d; labels are 0 to %d",
                                f->path, images->n, record[0],
                                DATA_CLASSES - 1);
        if (images->n == *room && grow(images, room))
            return -1;
        memcpy(images->pixels + images->n * PIXELS, record + 1, PIXELS);
        images->labels[images->n++] = record[0];
    }
    return more;
}

int cifar_load(struct images *images, const char *const *paths, int n_paths)
{
    size_t room = 0;
    int st = 0;

    *images =
        (struct images){.channels = CHANNELS, .height = SIDE, .width = SIDE};
    for (int i = 0; i < n_paths && !st; i++) {
        size_t before = images->n;
        struct data_file f;

        st = data_file_open(&f, paths[i]);
        if (!st)
            st = read_records(&f, images, &room);
        data_file_close(&f);
        if (!st && images->n == before)
            st = train_refuse("%s holds no images; it is not usable", paths[i]);
    }
    if (st)
        images_fini(images);
    return st;
}
