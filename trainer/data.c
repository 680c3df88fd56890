/* SPDX-License-Identifier: BSD-3-Clause */
/* data.c - finds a data set, and turns its bytes into a batch. */
#include "trainer/data.h"
#include "trainer/error.h"
#include "trainer/rng.h"
#include "trainer/synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYSTEM_DIR "/usr/share/datasets"
#define MAX_PATH 1024
#define CIFAR_BATCHES 5
#define SYNTHETIC_TRAIN 60000
#define SYNTHETIC_TEST 10000
#define SYNTHETIC_HELD                                                         \
    ((size_t)64 << 20)         /* bytes; more are drawn when wanted */
#define SEEN ((size_t)1 << 24) /* pixels from which the mean of drawn images
                                * is computed */

void images_fini(struct images *images)
{
    free(images->pixels);
    free(images->labels);
    synthetic_free(images->drawn);
    *images = (struct images){0};
}

void images_limit(struct images *images, size_t limit)
{
    if (limit && limit < images->n)
        images->n = limit;
}

void dataset_fini(struct dataset *d)
{
    if (d->map) {
        munmap(d->map, d->map_len);
        d->map = NULL;
        d->train = d->test = (struct images){0};
    }
    images_fini(&d->train);
    images_fini(&d->test);
}

/* ---- where the files are ---- */

/* A data set that is read from files; names are without .gz here. */
struct data_set {
    const char *name;
    const char *folders[3]; /* where to look in a folder of data; "" is that
                             * folder */
    const char *first;      /* a file that must be there */
    int (*load)(struct dataset *d, const char *folder, const char *name);
};

/* Find FOLDER/FILE, plain or .gz. */
static int find_file(char path[MAX_PATH], const char *folder, const char *file)
{
    static const char *const ends[] = {"", ".gz"};

    for (int i = 0; i < 2; i++) {
        int len = snprintf(path, MAX_PATH, "%s/%s%s", folder, file, ends[i]);

        if (len < MAX_PATH && access(path, F_OK) == 0)
            return 1;
    }
    return 0;
}

static int missing(const char *folder, const char *file, const char *name)
{
    return train_refuse(
        "%s/%s is missing, plain and .gz; name the folder of %s "
        "by --data-dir%s",
        folder, file, name,
        strcmp(name, "fashion-mnist")
            ? ", or fetch it with trainer/get_data.sh"
            : ", or install Debian's dataset-fashion-mnist");
}

/* Find a file that must be there. */
static int need_file(char path[MAX_PATH], const char *folder, const char *file,
                     const char *name)
{
    return find_file(path, folder, file) ? 0 : missing(folder, file, name);
}

/* Return 1 if the set is in dir or in a folder of its name there, and that
 * folder. */
static int find_folder(char folder[MAX_PATH], const char *dir,
                       const struct data_set *set)
{
    char path[MAX_PATH];

    for (int i = 0; i < 3; i++) {
        const char *below = set->folders[i];

        snprintf(folder, MAX_PATH, "%s%s%s", dir, *below ? "/" : "", below);
        if (find_file(path, folder, set->first))
            return 1;
    }
    return 0;
}

/* Look in --data-dir alone when it is given: to train on other data than the user
 * points at would be worse than to stop. */
static int choose_folder(char folder[MAX_PATH], const struct data_set *set,
                         const struct data_config *config)
{
    const char *dir = *config->dir ? config->dir : SYSTEM_DIR;

    if (find_folder(folder, dir, set))
        return 0;
    return missing(dir, set->first, set->name);
}

static int load_idx_part(struct images *images, const char *folder,
                         const char *part, const char *name)
{
    char pixels[MAX_PATH], labels[MAX_PATH], file[64];

    snprintf(file, sizeof(file), "%s-images-idx3-ubyte", part);
    if (need_file(pixels, folder, file, name))
        return -1;
    snprintf(file, sizeof(file), "%s-labels-idx1-ubyte", part);
    if (need_file(labels, folder, file, name))
        return -1;
    return idx_load(images, pixels, labels);
}

static int load_idx(struct dataset *d, const char *folder, const char *name)
{
    if (load_idx_part(&d->train, folder, "train", name) ||
        load_idx_part(&d->test, folder, "t10k", name))
        return -1;
    if (d->test.height != d->train.height || d->test.width != d->train.width)
        return train_refuse("%s holds training images of %d x %d and test "
                            "images of %d x %d; they do not belong together",
                            folder, d->train.height, d->train.width,
                            d->test.height, d->test.width);
    return 0;
}

static int load_cifar(struct dataset *d, const char *folder, const char *name)
{
    char paths[CIFAR_BATCHES][MAX_PATH], file[32], test[MAX_PATH];
    const char *list[CIFAR_BATCHES], *const tests[] = {test};
    int n = 0;

    for (; n < CIFAR_BATCHES; n++) {
        snprintf(file, sizeof(file), "data_batch_%d.bin", n + 1);
        if (!find_file(paths[n], folder, file))
            break;
        list[n] = paths[n];
    }
    if (need_file(test, folder, "test_batch.bin", name))
        return -1;
    return cifar_load(&d->train, list, n) || cifar_load(&d->test, tests, 1) ? -1
                                                                            : 0;
}

static const struct data_set sets[] = {
    {"fashion-mnist",
     {"fashion-mnist", "", ""},
     "train-images-idx3-ubyte",
     load_idx},
    {"mnist", {"mnist", "", ""}, "train-images-idx3-ubyte", load_idx},
    {"cifar10",
     {"cifar10", "cifar-10-batches-bin", ""},
     "data_batch_1.bin",
     load_cifar},
};

static const struct data_set *find_set(const char *name)
{
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        if (!strcmp(sets[i].name, name))
            return &sets[i];
    return NULL;
}

static size_t limited(size_t n, size_t limit)
{
    return limit && limit < n ? limit : n;
}

static int load_synthetic(struct dataset *d, const struct data_config *config)
{
    size_t n = limited(SYNTHETIC_TRAIN, config->limit_train);
    size_t n_test = limited(SYNTHETIC_TEST, config->limit_test);
    int (*make)(struct images * images, size_t n, uint64_t seed,
                uint64_t first);

    snprintf(d->where, sizeof(d->where), "made up");
    d->train = d->test = (struct images){.channels = config->channels,
                                         .height = config->height,
                                         .width = config->width};
    make = (n + n_test) * images_len(&d->train) > SYNTHETIC_HELD
               ? synthetic_promise
               : synthetic_make;
    return make(&d->train, n, config->seed, 0) ||
                   make(&d->test, n_test, config->seed, SYNTHETIC_TRAIN)
               ? -1
               : 0;
}

static int load_files(struct dataset *d, const struct data_config *config)
{
    const struct data_set *set = find_set(config->name);
    char folder[MAX_PATH];

    if (!set)
        return train_refuse("no data set is called %s", config->name);
    if (choose_folder(folder, set, config))
        return -1;
    snprintf(d->where, sizeof(d->where), "%.511s", folder);
    if (set->load(d, folder, set->name))
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

/* Count how often each value is in the first n images. */
static void count_values(const struct images *images, size_t n,
                         uint64_t count[256])
{
    size_t n_pixels = n * images_len(images);

    for (size_t i = 0; !images->drawn && i < n_pixels; i++)
        count[images->pixels[i]]++;
    for (size_t i = 0; images->drawn && i < n; i++) {
        struct synthetic_image image = synthetic_image(images, i);

        for (int c = 0; c < images->channels; c++)
            for (int y = 0; y < images->height; y++)
                for (int x = 0; x < images->width; x++)
                    count[synthetic_pixel(&image, c, y, x)]++;
    }
}

void pixel_scale_meanstd(struct pixel_scale *scale,
                         const struct images *images)
{
    uint64_t count[256] = {0};
    size_t n_seen = images->drawn
                        ? limited(images->n, SEEN / images_len(images))
                        : images->n;
    double n = (double)(n_seen * images_len(images)), sum = 0, squares = 0;
    double mean, deviation;

    count_values(images, n_seen, count);
    for (int v = 0; v < 256; v++) {
        sum += (double)count[v] * v;
        squares += (double)count[v] * v * v;
    }
    mean = sum / n;
    deviation = sqrt(squares / n - mean * mean);
    for (int v = 0; v < 256; v++)
        scale->value[v] = (float)((v - mean) / (deviation > 0 ? deviation : 1));
}

/* How far an image is moved, and whether it is mirrored. */
struct move {
    int down, right, is_mirrored;
};

static struct move draw_move(const struct images_pick *pick, int i)
{
    uint64_t key = rng_key(pick->key, pick->first + (uint64_t)i);
    uint64_t places = 2 * AUGMENT_PAD + 1;

    return (struct move){
        .down = (int)rng_below(key, 0, places) - AUGMENT_PAD,
        .right = (int)rng_below(key, 1, places) - AUGMENT_PAD,
        .is_mirrored = (int)rng_below(key, 2, 2),
    };
}

/* Copy an image as it is. */
static float *put(const struct images_pick *pick, const unsigned char *from,
                  float *out)
{
    const struct images *images = pick->images;
    size_t plane = (size_t)images->height * (size_t)images->width;
    size_t len = images_len(images);

    for (size_t p = 0; p < plane; p++)
        for (size_t c = 0; c < len; c += plane)
            *out++ = pick->scale->value[from[c + p]];
    return out;
}

/* An image in memory, or one that is drawn when it is needed. */
struct original {
    const unsigned char *bytes; /* or NULL */
    struct synthetic_image drawn;
};

static unsigned char pixel_of(const struct images *images,
                              const struct original *from, int channel, int y,
                              int x)
{
    if (!from->bytes)
        return synthetic_pixel(&from->drawn, channel, y, x);
    return from->bytes[(channel * images->height + y) * images->width + x];
}

/* Pixels from outside the image are black before they are scaled, as in
 * torchvision. */
static float *put_moved(const struct images_pick *pick,
                        const struct original *from, struct move move,
                        float *out)
{
    const struct images *images = pick->images;
    int height = images->height, width = images->width;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int row = y + move.down;
            int column = (move.is_mirrored ? width - 1 - x : x) + move.right;
            int is_inside =
                row >= 0 && row < height && column >= 0 && column < width;

            for (int c = 0; c < images->channels; c++)
                *out++ = pick->scale->value[is_inside ? pixel_of(images, from,
                                                                 c, row, column)
                                                      : 0];
        }
    return out;
}

void images_gather(const struct images_pick *pick, float *out,
                   unsigned char *labels)
{
    const struct images *images = pick->images;
    size_t len = images_len(images);

    for (int i = 0; i < pick->n; i++) {
        size_t at = pick->index[i];
        struct original from = {.bytes = NULL};
        struct move move = {0, 0, 0};

        if (images->drawn)
            from.drawn = synthetic_image(images, at);
        else
            from.bytes = images->pixels + at * len;
        if (pick->augment != AUGMENT_NONE)
            move = draw_move(pick, i);
        out = images->drawn || pick->augment != AUGMENT_NONE
                  ? put_moved(pick, &from, move, out)
                  : put(pick, from.bytes, out);
        labels[i] = images->drawn ? from.drawn.look.label : images->labels[at];
    }
}
