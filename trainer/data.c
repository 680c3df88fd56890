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

/* Look for DIR/FILE and DIR/FILE.gz. */
static int find_in(const char *dir, const char *file, char *path)
{
    snprintf(path, MAX_PATH, "%s/%s", dir, file);
    if (access(path, F_OK) == 0)
        return 1;
    snprintf(path, MAX_PATH, "%s/%s.gz", dir, file);
    return access(path, F_OK) == 0;
}

/* A set's files lie in its folder, or in a folder of its name there. */
static int find_file(const char *dir, const char *name, const char *file,
                     char *path)
{
    char below[MAX_PATH];

    if (find_in(dir, file, path))
        return 0;
    if ((size_t)snprintf(below, sizeof(below), "%s/%s", dir, name) <
            sizeof(below) - 64 && find_in(below, file, path))
        return 0;
    return train_fail("%s/%s is missing, plain and .gz; name the folder of %s "
                      "by --data-dir or COLL_DATA%s", dir, file, name,
                      strcmp(name, "fashion-mnist")
                          ? ""
                          : ", or install Debian's dataset-fashion-mnist");
}

/* --data-dir, else COLL_DATA, else the system's.  A folder that the user names
 * is not passed over when it lacks a file: that would train on other data. */
static const char *data_dir(const struct data_config *config)
{
    const char *env = getenv("COLL_DATA");

    if (*config->dir)
        return config->dir;
    return env && *env ? env : SYSTEM_DIR;
}

static int load_part(struct images *images, const struct data_config *config,
                     const char *part)
{
    char pixels[MAX_PATH], labels[MAX_PATH], file[64];
    const char *dir = data_dir(config);

    snprintf(file, sizeof(file), "%s-images-idx3-ubyte", part);
    if (find_file(dir, config->name, file, pixels))
        return -1;
    snprintf(file, sizeof(file), "%s-labels-idx1-ubyte", part);
    if (find_file(dir, config->name, file, labels))
        return -1;
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
    return synthetic_make(&d->train, n, config->seed, 0) ||
                   synthetic_make(&d->test, n_test, config->seed,
                                  SYNTHETIC_TRAIN)
               ? -1
               : 0;
}

static int load_files(struct dataset *d, const struct data_config *config)
{
    snprintf(d->where, sizeof(d->where), "%s", data_dir(config));
    if (load_part(&d->train, config, "train") ||
        load_part(&d->test, config, "t10k"))
        return -1;
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
    double n = (double)images->n * DATA_PIXELS, sum = 0, squares = 0;
    double mean, deviation;

    for (size_t i = 0; i < images->n * DATA_PIXELS; i++)
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
    for (int i = 0; i < n; i++) {
        const unsigned char *from =
            images->pixels + (size_t)index[i] * DATA_PIXELS;

        for (int p = 0; p < DATA_PIXELS; p++)
            *out++ = scale->value[from[p]];
        labels[i] = images->labels[index[i]];
    }
}
