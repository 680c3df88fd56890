/* SPDX-License-Identifier: BSD-3-Clause */
/* idx.c - IDX files: a magic number, sizes, bytes; all big-endian.
 *
 * Nothing in a file is trusted: sizes are compared with what the file could
 * contain before memory is allocated.
 */
#include "trainer/data.h"
#include "trainer/data_file.h"
#include "trainer/error.h"

#include <stdlib.h>

#define MAGIC_IMAGES 0x803 /* bytes, three dimensions */
#define MAGIC_LABELS 0x801 /* bytes, one dimension */
#define MAX_SIDE 1024      /* of an image */

static int idx_number(struct data_file *f, uint32_t *value)
{
    unsigned char b[4];

    if (data_file_read(f, b, sizeof(b)))
        return -1;
    *value = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
             (uint32_t)b[2] << 8 | b[3];
    return 0;
}

static int idx_magic(struct data_file *f, uint32_t wanted, const char *what)
{
    uint32_t magic;

    if (idx_number(f, &magic))
        return -1;
    if (magic != wanted)
        return train_refuse("%s is no IDX file of %s: it begins with 0x%08x, "
                            "not 0x%08x",
                            f->path, what, magic, wanted);
    return 0;
}

/* Read n records of `each` bytes into new memory. */
static int idx_body(struct data_file *f, size_t n, size_t each,
                    unsigned char **body)
{
    size_t len = n * each; /* n < 2^32, each <= MAX_SIDE^2 */
    unsigned char *p;

    if (n == 0)
        return train_refuse("%s holds no images; it is not usable", f->path);
    if (len > data_file_most(f))
        return data_file_cut_off(f);
    p = malloc(len);
    if (!p)
        return train_fail("out of memory for the %zu bytes of %s; use fewer "
                          "ranks on this machine", len, f->path);
    if (data_file_read(f, p, len) || data_file_end(f)) {
        free(p);
        return -1;
    }
    *body = p;
    return 0;
}

static int read_images(struct data_file *f, struct images *images)
{
    uint32_t n, rows, columns;

    if (idx_magic(f, MAGIC_IMAGES, "images") || idx_number(f, &n) ||
        idx_number(f, &rows) || idx_number(f, &columns))
        return -1;
    if (rows < 1 || columns < 1 || rows > MAX_SIDE || columns > MAX_SIDE)
        return train_refuse("%s holds images of %u x %u; sides of 1 to %d are "
                            "usable",
                            f->path, rows, columns, MAX_SIDE);
    images->n = n;
    images->channels = 1;
    images->height = (int)rows;
    images->width = (int)columns;
    return idx_body(f, n, images_len(images), &images->pixels);
}

static int read_labels(struct data_file *f, struct images *images)
{
    uint32_t n;

    if (idx_magic(f, MAGIC_LABELS, "labels") || idx_number(f, &n))
        return -1;
    if (n != images->n)
        return train_refuse("%s holds %u labels for %zu images; the two files "
                            "do not belong together",
                            f->path, n, images->n);
    if (idx_body(f, n, 1, &images->labels))
        return -1;
    for (size_t i = 0; i < images->n; i++)
        if (images->labels[i] >= DATA_CLASSES)
            return train_refuse("%s: label %zu is %d; labels are 0 to %d",
                                f->path, i, images->labels[i],
                                DATA_CLASSES - 1);
    return 0;
}

static int read_file(const char *path, struct images *images,
                     int (*read)(struct data_file *, struct images *))
{
    struct data_file f;
    int st = data_file_open(&f, path);

    if (!st)
        st = read(&f, images);
    data_file_close(&f);
    return st;
}

int idx_load(struct images *images, const char *pixels_path,
             const char *labels_path)
{
    *images = (struct images){0};
    if (!read_file(pixels_path, images, read_images) &&
        !read_file(labels_path, images, read_labels))
        return 0;
    images_fini(images);
    return -1;
}
