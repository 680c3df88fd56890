/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint.c - save by rename, and check everything that is read. */
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/finite.h"

#include <zlib.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x54504b434c4c4f43u /* "COLLCKPT" */
#define FORMAT 3
#define OLD_FORMAT 2 /* without the data set; is read, and not written */

enum word {
    W_MAGIC,
    W_VERSION,
    W_N_PARAMS,
    W_OPTIM,
    W_N_STATE,
    W_EPOCH,
    W_STEP,
    W_SEED,
    W_N_RANKS,
    W_BATCH,
    W_SHARD,
    W_DROPS_REST,
    N_OLD_WORDS,
    W_DATASET = N_OLD_WORDS, /* its name, filled up with zeros */
    N_WORDS = W_DATASET + CHECKPOINT_NAME / sizeof(uint64_t)
};

/* The bytes of a checkpoint: words, floats, CRC. */
struct image {
    unsigned char *bytes;
    size_t len, n_words;
};

static size_t n_floats(const struct checkpoint *c)
{
    return c->n_params + c->n_state + c->n_running;
}

static size_t image_len(const struct checkpoint *c, size_t n_words)
{
    return n_words * sizeof(uint64_t) + n_floats(c) * sizeof(float) +
           sizeof(uint32_t);
}

static uint32_t image_crc(const struct image *im)
{
    return (uint32_t)crc32_z(0, im->bytes, im->len - sizeof(uint32_t));
}

static uint64_t get_word(const struct image *im, enum word w)
{
    uint64_t value;

    memcpy(&value, im->bytes + (size_t)w * sizeof(value), sizeof(value));
    return value;
}

/* Return the parameters, which state and running statistics follow. */
static const float *get_floats(const struct image *im)
{
    const void *floats = im->bytes + im->n_words * sizeof(uint64_t);

    return floats; /* aligned, as the words before them are */
}

/* Copy the data set's name; "" if the file has none, or one that no data set of this
 * program can have. */
static void get_dataset(const struct image *im, char name[CHECKPOINT_NAME])
{
    name[0] = '\0';
    if (im->n_words < N_WORDS)
        return;
    memcpy(name, im->bytes + W_DATASET * sizeof(uint64_t), CHECKPOINT_NAME);
    if (!memchr(name, '\0', CHECKPOINT_NAME) ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
        name[0] = '\0';
}

static uint32_t get_crc(const struct image *im)
{
    uint32_t crc;

    memcpy(&crc, im->bytes + im->len - sizeof(crc), sizeof(crc));
    return crc;
}

/* ---- saving ---- */

/* Append n floats of the device: 0 and *end, or -1 with train_error() set. */
static int put_floats(unsigned char **end, const struct checkpoint *c,
                      const float *from, size_t n)
{
    if (c->device->read(*end, from, n * sizeof(*from)))
        return -1;
    *end += n * sizeof(*from);
    return 0;
}

static int image_make(struct image *im, const struct checkpoint *c)
{
    uint64_t words[N_WORDS] = {
        [W_MAGIC] = MAGIC,
        [W_VERSION] = FORMAT,
        [W_N_PARAMS] = c->n_params,
        [W_OPTIM] = c->optim,
        [W_N_STATE] = c->n_state,
        [W_EPOCH] = c->epoch,
        [W_STEP] = c->step,
        [W_SEED] = c->seed,
        [W_N_RANKS] = c->steps.n_ranks,
        [W_BATCH] = c->steps.batch,
        [W_SHARD] = c->steps.shard,
        [W_DROPS_REST] = c->steps.drops_rest,
    };
    unsigned char *p;
    uint32_t crc;

    memcpy(words + W_DATASET, c->dataset, sizeof(c->dataset));
    im->n_words = N_WORDS;
    im->len = image_len(c, N_WORDS);
    im->bytes = malloc(im->len);
    if (!im->bytes)
        return train_fail("out of memory for a checkpoint of %zu bytes; use "
                          "fewer ranks on this machine", im->len);
    p = im->bytes;
    p = mempcpy(p, words, sizeof(words));
    if (put_floats(&p, c, c->params, c->n_params) ||
        put_floats(&p, c, c->state, c->n_state) ||
        put_floats(&p, c, c->running, c->n_running)) {
        free(im->bytes);
        return -1;
    }
    crc = image_crc(im);
    memcpy(p, &crc, sizeof(crc));
    return 0;
}

static int write_all(int fd, const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Write a new file and sync it; errno says why it failed. */
static int write_file(const char *path, const struct image *im)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int err = 0;

    if (fd < 0)
        return -1;
    if (write_all(fd, im->bytes, im->len) || fsync(fd))
        err = errno;
    if (close(fd) && !err)
        err = errno;
    errno = err;
    return err ? -1 : 0;
}

/* The rename is permanent once the folder is synced.  File systems that cannot
 * sync a folder need not. */
static void sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static int cannot_write(const char *noun, const char *path)
{
    char what[CHECKPOINT_PATH + 32];

    snprintf(what, sizeof(what), "%s %s", noun, path);
    return train_cannot_write(what, "folder by --checkpoint");
}

int checkpoint_probe(const char *dir)
{
    char path[CHECKPOINT_PATH];
    struct image one = {(unsigned char[]){0}, 1, 0};

    if (mkdir(dir, 0777) && errno != EEXIST)
        return cannot_write("checkpoints to", dir);
    snprintf(path, sizeof(path), "%s/.probe-%d", dir, (int)getpid());
    if (write_file(path, &one)) {
        cannot_write("checkpoints to", dir);
        unlink(path);
        return -1;
    }
    unlink(path);
    return 0;
}

/* ---- the folder ---- */

#define SKIP_BITS 32

/* The progress of a run, as one number: epochs in the upper bits, steps of the next
 * epoch in the lower ones.  0 stands for no checkpoint. */
static uint64_t place_of(const struct checkpoint *c)
{
    return c->epoch << SKIP_BITS | c->skip;
}

static void name_file(char *path, const char *dir, uint64_t place)
{
    unsigned long long epoch = place >> SKIP_BITS;
    unsigned long long skip = place & (((uint64_t)1 << SKIP_BITS) - 1);

    if (skip)
        snprintf(path, CHECKPOINT_PATH, "%s/epoch-%04llu+%06llu.ckpt", dir,
                 epoch, skip);
    else
        snprintf(path, CHECKPOINT_PATH, "%s/epoch-%04llu.ckpt", dir, epoch);
}

/* Return the place that a file's name stands for, or 0 if name_file() makes no
 * such name. */
static uint64_t place_in(const char *name)
{
    char path[CHECKPOINT_PATH];
    unsigned long long epoch, skip = 0;
    uint64_t place;

    if (sscanf(name, "epoch-%llu+%llu.ckpt", &epoch, &skip) < 1 ||
        epoch > UINT32_MAX || skip > UINT32_MAX)
        return 0;
    place = (uint64_t)epoch << SKIP_BITS | skip;
    name_file(path, "", place);
    return strcmp(path + 1, name) ? 0 : place;
}

/* Return the largest place below `below` that has a file, or 0. */
static uint64_t largest_below(DIR *folder, uint64_t below)
{
    uint64_t best = 0;
    struct dirent *entry;

    rewinddir(folder);
    while ((entry = readdir(folder))) {
        uint64_t place = place_in(entry->d_name);

        if (place > best && place < below)
            best = place;
    }
    return best;
}

/* Remove all but the newest `keep` checkpoints; those that cannot be removed
 * stay. */
static void prune(const char *dir, uint64_t newest, size_t keep)
{
    char path[CHECKPOINT_PATH];
    uint64_t place = newest + 1;
    DIR *folder = opendir(dir);

    if (!folder)
        return;
    for (size_t n = 0; (place = largest_below(folder, place)); n++) {
        if (n < keep)
            continue;
        name_file(path, dir, place);
        unlink(path);
    }
    closedir(folder);
}

/* Write a finished image under another name, and rename it. */
static int put_file(const struct image *im, const char *dir, const char *path)
{
    char draft[CHECKPOINT_PATH];
    int st = 0;

    snprintf(draft, sizeof(draft), "%s/.draft-%d", dir, (int)getpid());
    if (write_file(draft, im) || rename(draft, path)) {
        st = cannot_write("checkpoint", path);
        unlink(draft);
    }
    return st;
}

int checkpoint_save(const struct checkpoint *c, const char *dir, size_t keep)
{
    char path[CHECKPOINT_PATH];
    struct image im;
    int st;

    name_file(path, dir, place_of(c));
    if (image_make(&im, c))
        return -1;
    if (finite_len(get_floats(&im), n_floats(c)) < n_floats(c))
        st = train_fail("checkpoint %s is not written: it would hold numbers "
                        "that are not finite; lower --lr",
                        path);
    else
        st = put_file(&im, dir, path);
    free(im.bytes);
    if (!st)
        sync_dir(dir);
    if (!st && keep)
        prune(dir, place_of(c), keep);
    return st;
}

/* Find the newest checkpoint whose place is below `below`. */
static int find_below(const char *dir, uint64_t below,
                      char path[CHECKPOINT_PATH])
{
    DIR *folder = opendir(dir);
    uint64_t place;

    if (!folder && errno == ENOENT)
        return 0;
    if (!folder)
        return train_refuse("cannot look for checkpoints in %s: %s; check "
                            "--checkpoint",
                            dir, strerror(errno));
    place = largest_below(folder, below);
    closedir(folder);
    if (place)
        name_file(path, dir, place);
    return place > 0;
}

int checkpoint_newest(const char *dir, char path[CHECKPOINT_PATH])
{
    return find_below(dir, UINT64_MAX, path);
}

int checkpoint_older(const char *dir, char path[CHECKPOINT_PATH])
{
    return find_below(dir, place_in(basename(path)), path);
}

/* ---- loading ---- */

static int read_all(int fd, unsigned char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Read a file, but no more than `most` bytes; *len is its true length. */
static int image_read(struct image *im, const char *path, size_t most,
                      size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    im->bytes = NULL;
    if (fd < 0 || fstat(fd, &st)) {
        train_refuse("cannot read checkpoint %s: %s; check --resume", path,
                     strerror(errno));
        goto fail;
    }
    if (S_ISDIR(st.st_mode)) {
        train_refuse("cannot read checkpoint %s: it is a folder; say --resume "
                     "auto --checkpoint %s for the newest one in it",
                     path, path);
        goto fail;
    }
    *len = (size_t)st.st_size;
    im->len = *len < most ? *len : most;
    im->bytes = calloc(1, im->len + N_WORDS * sizeof(uint64_t));
    if (!im->bytes || !S_ISREG(st.st_mode) ||
        read_all(fd, im->bytes, im->len)) {
        train_refuse("cannot read checkpoint %s: it is no regular file, or it "
                     "cannot be read to its end; check --resume",
                     path);
        goto fail;
    }
    close(fd);
    return 0;

fail:
    free(im->bytes);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Return the words of the file's header.  A damaged version must not hide that the length
 * is right, since the check sum then tells of the damage. */
static size_t count_words(const struct image *im, const struct checkpoint *c,
                          size_t len)
{
    uint64_t version = get_word(im, W_VERSION);

    if (len == image_len(c, N_WORDS) || version == FORMAT)
        return N_WORDS;
    return len == image_len(c, N_OLD_WORDS) || version == OLD_FORMAT
               ? N_OLD_WORDS
               : N_WORDS;
}

/* Refuse a damaged file; the caller may try an older one. */
static int damaged(const char *path, const char *how)
{
    train_refuse("%s %s", path, how);
    return CHECKPOINT_DAMAGED;
}

/* Check that the file is whole and a checkpoint.  If its length is right, nothing in it
 * is used before its check sum has been compared. */
static int judge_file(const struct image *im, const struct checkpoint *c,
                      const char *path, size_t len)
{
    if (len == image_len(c, im->n_words) && get_crc(im) != image_crc(im))
        return damaged(path, "is damaged: its check sum is wrong");
    if (get_word(im, W_MAGIC) != MAGIC)
        return damaged(path, "is no checkpoint of this coll_train");
    if (len < im->n_words * sizeof(uint64_t))
        return damaged(path, "is cut off within its first words");
    return 0;
}

/* Refuse a file of another model.  Its data set may be the reason. */
static int other_model(const struct image *im, const struct checkpoint *c,
                       const char *path)
{
    char dataset[CHECKPOINT_NAME];
    int is_other;

    get_dataset(im, dataset);
    is_other = *dataset && strcmp(dataset, c->dataset);
    return train_refuse(
        "%s holds another model (%llu parameters, not %zu)%s%s; name another "
        "by --resume",
        path, (unsigned long long)get_word(im, W_N_PARAMS), c->n_params,
        is_other ? " of " : "", is_other ? dataset : "");
}

/* Check that the file is of this run's model and optimizer. */
static int judge_run(const struct image *im, const struct checkpoint *c,
                     const char *path)
{
    if (get_word(im, W_VERSION) !=
        (im->n_words == N_WORDS ? FORMAT : OLD_FORMAT))
        return train_refuse(
            "%s was made by another version of coll_train; go on "
            "with that one",
            path);
    if (get_word(im, W_N_PARAMS) != c->n_params)
        return other_model(im, c, path);
    if (get_word(im, W_OPTIM) != c->optim ||
        get_word(im, W_N_STATE) != c->n_state)
        return train_refuse("%s was made with another optimizer; resume with "
                            "the same --opt",
                            path);
    return 0;
}

/* Check an image; `len` is the length of the file that it was read from. */
static int judge(const struct image *im, const struct checkpoint *c,
                 const char *path, size_t len)
{
    size_t n = n_floats(c);
    int st = judge_file(im, c, path, len);

    if (!st)
        st = judge_run(im, c, path);
    if (st)
        return st;
    if (len != image_len(c, im->n_words)) {
        train_refuse("%s is cut off: it has %zu bytes of %zu", path, len,
                     image_len(c, im->n_words));
        return CHECKPOINT_DAMAGED;
    }
    if (finite_len(get_floats(im), n) < n)
        return damaged(path, "holds numbers that are not finite");
    return 0;
}

/* Copy n floats to the device, and return what follows them. */
static const float *take_floats(const struct checkpoint *c, float *to,
                                const float *from, size_t n)
{
    c->device->write(to, from, n * sizeof(*to));
    return from + n;
}

static void image_take(const struct image *im, struct checkpoint *c)
{
    const float *from = get_floats(im);

    c->epoch = get_word(im, W_EPOCH);
    c->step = get_word(im, W_STEP);
    c->seed = get_word(im, W_SEED);
    c->steps = (struct checkpoint_steps){
        .n_ranks = get_word(im, W_N_RANKS),
        .batch = get_word(im, W_BATCH),
        .shard = get_word(im, W_SHARD),
        .drops_rest = get_word(im, W_DROPS_REST),
    };
    get_dataset(im, c->dataset);
    from = take_floats(c, c->params, from, c->n_params);
    from = take_floats(c, c->state, from, c->n_state);
    take_floats(c, c->running, from, c->n_running);
}

int checkpoint_load(struct checkpoint *c, const char *path)
{
    struct image im;
    size_t len;
    int st;

    if (image_read(&im, path, image_len(c, N_WORDS), &len))
        return -1;
    im.n_words = count_words(&im, c, len);
    st = judge(&im, c, path, len);
    if (!st) {
        image_take(&im, c);
        c->skip = place_in(basename(path)) & UINT32_MAX;
    }
    free(im.bytes);
    return st;
}
