/* SPDX-License-Identifier: BSD-3-Clause */
/* data.c - finds a data set, and turns its bytes into a batch. */
#include "trainer/data.h"
#include "trainer/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_DIR "/usr/share/datasets"
#define MAX_PATH 1024
#define IMAGES "images-idx3"
#define LABELS "labels-idx1"
#define SYNTHETIC_TRAIN 60000
#define SYNTHETIC_TEST 10000

void images_fini(struct images *images)
{
    free(images->pixels);
    free(images->labels);
    *images = (struct images){0};
}

void images_limit(struct images *images, size_t limit)
{
    if (limit && limit < images->n)
        images->n = limit;
}

void dataset_fini(struct dataset *d)
{
    images_fini(&d->train);
    images_fini(&d->test);
}

/* ---- where the files are ---- */

/* Find FOLDER/PART-WHAT-ubyte, plain or .gz. */
static int find_file(char path[MAX_PATH], const char *folder, const char *part,
                     const char *what)
{
    static const char *const ends[] = {"", ".gz"};

    for (int i = 0; i < 2; i++) {
        int len = snprintf(path, MAX_PATH, "%s/%s-%s-ubyte%s", folder, part,
                           what, ends[i]);

        if (len < MAX_PATH && access(path, F_OK) == 0)
            return 1;
    }
    return 0;
}

/* Say whether a set lies in dir, or in the folder of its name there. */
static int find_folder(char folder[MAX_PATH], const char *dir,
                       const char *name)
{
    char path[MAX_PATH];

    snprintf(folder, MAX_PATH, "%s/%s", dir, name);
    if (find_file(path, folder, "train", IMAGES))
        return 1;
    snprintf(folder, MAX_PATH, "%s", dir);
    return find_file(path, folder, "train", IMAGES);
}

static int missing(const char *folder, const char *part, const char *what,
                   const char *name)
{
    return train_fail("%s/%s-%s-ubyte is missing, plain and .gz; name the "
                      "folder of %s by --data-dir or COLL_DATA%s", folder, part,
                      what, name,
                      strcmp(name, "fashion-mnist")
                          ? ""
                          : ", or install Debian's dataset-fashion-mnist");
}

/* --data-dir alone, when it is given: to train on other data than the user
 * points at would be worse than to stop.  Else COLL_DATA, then the system's. */
static int choose_folder(char folder[MAX_PATH],
                         const struct data_config *config)
{
    const char *env = getenv("COLL_DATA");
    const char *dirs[] = {env && *env ? env : SYSTEM_DIR, SYSTEM_DIR};
    int n_dirs = 2;

    if (*config->dir) {
        dirs[0] = config->dir;
        n_dirs = 1;
    }
    for (int i = 0; i < n_dirs; i++)
        if (find_folder(folder, dirs[i], config->name))
            return 0;
    return missing(dirs[0], "train", IMAGES, config->name);
}

static int load_part(struct images *images, const char *folder,
                     const char *part, const char *name)
{
    char pixels[MAX_PATH], labels[MAX_PATH];

    if (!find_file(pixels, folder, part, IMAGES))
        return missing(folder, part, IMAGES, name);
    if (!find_file(labels, folder, part, LABELS))
        return missing(folder, part, LABELS, name);
    return idx_load(images, pixels, labels);
}

static size_t limited(size_t n, size_t limit)
{
    return limit && limit < n ? limit : n;
}

static int load_synthetic(struct dataset *d, const struct data_config *config)
{
    size_t n = limited(SYNTHETIC_TRAIN, config->limit_train);
    size_t n_test = limited(SYNTHETIC_TEST, config->limit_test);

    snprintf(d->where, sizeof(d->where), "made up");
    d->train = d->test = (struct images){.channels = config->channels,
                                         .height = config->height,
                                         .width = config->width};
    return synthetic_make(&d->train, n, config->seed, 0) ||
                   synthetic_make(&d->test, n_test, config->seed,
                                  SYNTHETIC_TRAIN)
               ? -1
               : 0;
}

static int load_files(struct dataset *d, const struct data_config *config)
{
    char folder[MAX_PATH];

    if (choose_folder(folder, config))
        return -1;
    snprintf(d->where, sizeof(d->where), "%.511s", folder);
    if (load_part(&d->train, folder, "train", config->name) ||
        load_part(&d->test, folder, "t10k", config->name))
        return -1;
    if (d->test.height != d->train.height || d->test.width != d->train.width)
        return train_fail("%s holds training images of %d x %d and test "
                          "images of %d x %d; they do not belong together",
                          folder, d->train.height, d->train.width,
                          d->test.height, d->test.width);
    images_limit(&d->train, config->limit_train);
    images_limit(&d->test, config->limit_test);
    return 0;
}

int dataset_load(struct dataset *d, const struct data_config *config)
{
    int st;

    *d = (struct dataset){.where = ""};
    st = strcmp(config->name, "synthetic") ? load_files(d, config)
                                           : load_synthetic(d, config);
    if (st)
        dataset_fini(d);
    return st;
}

/* ---- pixels into numbers ---- */

void pixel_scale_unit(struct pixel_scale *scale)
{
    for (int v = 0; v < 256; v++)
        scale->value[v] = (float)v / 255;
}

void pixel_scale_meanstd(struct pixel_scale *scale,
                         const struct images *images)
{
    uint64_t count[256] = {0};
    size_t n_pixels = images->n * images_len(images);
    double n = (double)n_pixels, sum = 0, squares = 0;
    double mean, deviation;

    for (size_t i = 0; i < n_pixels; i++)
        count[images->pixels[i]]++;
    for (int v = 0; v < 256; v++) {
        sum += (double)count[v] * v;
        squares += (double)count[v] * v * v;
    }
    mean = sum / n;
    deviation = sqrt(squares / n - mean * mean);
    for (int v = 0; v < 256; v++)
        scale->value[v] = (float)((v - mean) / (deviation > 0 ? deviation : 1));
}

void images_gather(const struct images *images, const uint32_t *index, int n,
                   const struct pixel_scale *scale, float *out,
                   unsigned char *labels)
{
    size_t plane = (size_t)images->height * (size_t)images->width;
    size_t len = images_len(images);

    for (int i = 0; i < n; i++) {
        const unsigned char *from = images->pixels + (size_t)index[i] * len;

        for (size_t p = 0; p < plane; p++)
            for (size_t c = 0; c < len; c += plane)
                *out++ = scale->value[from[c + p]];
        labels[i] = images->labels[index[i]];
    }
}
