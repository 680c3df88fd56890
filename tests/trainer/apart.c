/* SPDX-License-Identifier: BSD-3-Clause */
/* apart.c - a device whose memory the host cannot touch; else it is the processors.
 *
 * With DEVICE_APART=1 a coll_train that this file is linked into trains on it, whatever
 * --device says: the linker's --wrap leads device_find() here.  Its memory is an area that
 * can be touched only while one of its functions runs.  So host code that follows a pointer
 * of the device ends by SIGSEGV.
 */
#include "tests/trainer/apart.h"
#include "trainer/device.h"
#include "trainer/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREA ((size_t)4 << 30) /* bytes of addresses */
#define ALIGNMENT 64

static char *area;    /* NULL: it is not in use */
static size_t n_used; /* bytes of it; what is released is not used again */
static int n_open;

/* Protect the pages of these bytes. */
static void protect(const char *at, size_t len, int how)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (size_t)(at - area) / page * page;

    if (area && len &&
        mprotect(area + first, (size_t)(at + len - area) - first, how)) {
        perror("apart: mprotect");
        abort();
    }
}

/* Open these bytes, or all if len is 0. */
static void open_bytes(const void *at, size_t len)
{
    if (n_open++ == 0)
        protect(len ? at : area, len ? len : n_used, PROT_READ | PROT_WRITE);
}

static void close_bytes(const void *at, size_t len)
{
    if (--n_open == 0)
        protect(len ? at : area, len ? len : n_used, PROT_NONE);
}

void apart_open(void) { open_bytes(NULL, 0); }

void apart_close(void) { close_bytes(NULL, 0); }

#define OPENED(call) OPENED_AT(NULL, 0, call)

/* The host copies in small pieces: to open all for each would take long. */
#define OPENED_AT(at, len, call)                                               \
    do {                                                                       \
        open_bytes(at, len);                                                   \
        call;                                                                  \
        close_bytes(at, len);                                                  \
    } while (0)

/* ---- memory ---- */

static int apart_init(const struct device_config *config)
{
    if (!area)
        area = mmap(NULL, AREA, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        abort();
    madvise(area, AREA, MADV_HUGEPAGE); /* large pages are protected sooner */
    return device_cpu.init(config);
}

/* Nobody has touched what it returns, so it is zero. */
static void *apart_alloc(size_t len)
{
    char *at = area + n_used;

    if (len > AREA - ALIGNMENT - n_used)
        return NULL;
    n_used += len / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    return at;
}

static void apart_release(void *at) { (void)at; }

static void apart_write(void *to, const void *from, size_t len)
{
    OPENED_AT(to, len, device_cpu.write(to, from, len));
}

static int apart_read(void *to, const void *from, size_t len)
{
    int st;

    OPENED_AT(from, len, st = device_cpu.read(to, from, len));
    return st;
}

static void apart_copy(void *to, const void *from, size_t len)
{
    OPENED(device_cpu.copy(to, from, len));
}

static void apart_zero(void *at, size_t len)
{
    OPENED_AT(at, len, device_cpu.zero(at, len));
}

/* ---- floats and values ---- */

static void apart_add(float *to, const float *from, size_t n)
{
    OPENED(device_cpu.add(to, from, n));
}

static void apart_squares(const float *values, size_t n, double *sum)
{
    OPENED(device_cpu.squares(values, n, sum));
}

static void apart_clip(float *values, size_t n, const double *squares,
                       double most)
{
    OPENED(device_cpu.clip(values, n, squares, most));
}

static void apart_spoil(const struct model_score *score, float *values,
                        size_t n, size_t parts)
{
    OPENED(device_cpu.spoil(score, values, n, parts));
}

static void apart_pack(enum wire wire, const float *from, uint16_t *to,
                       size_t n)
{
    OPENED(device_cpu.pack(wire, from, to, n));
}

static void apart_unpack(enum wire wire, const uint16_t *from, float *to,
                         size_t n)
{
    OPENED(device_cpu.unpack(wire, from, to, n));
}

static int apart_block(void) { return device_cpu.values.block(); }

static size_t apart_size(void) { return device_cpu.values.size(); }

static int apart_read_values(float *to, const void *from, size_t n)
{
    int st;

    OPENED_AT(from, n * device_cpu.values.size(),
              st = device_cpu.values.read(to, from, n));
    return st;
}

static void apart_add_values(void *to, const void *from, size_t n)
{
    OPENED(device_cpu.values.add(to, from, n));
}

/* ---- layers ---- */

/* A kind of layer of the processors, opened while it runs; `ops` is first, so that a
 * layer's ops lead to it. */
struct kind {
    struct layer_ops ops;
    const struct layer_ops *of;
};

static const struct layer_ops *of(const struct layer *layer)
{
    return ((const struct kind *)(const void *)layer->ops)->of;
}

static int opened_forward(struct layer *layer, const struct layer_io *io,
                          const struct pass *pass)
{
    int st;

    OPENED(st = of(layer)->forward(layer, io, pass));
    return st;
}

static int opened_backward(struct layer *layer, const struct layer_io *io,
                           const struct pass *pass)
{
    int st;

    OPENED(st = of(layer)->backward(layer, io, pass));
    return st;
}

static const struct layer_ops *apart_layer(const struct layer_spec *spec,
                                           const struct shape *in)
{
    const struct layer_ops *found = device_cpu.layer(spec, in);
    static struct kind kinds[16];
    struct kind *kind = kinds;

    while (kind->of && kind->of != found)
        kind++;
    kind->of = found;
    kind->ops = *found;
    kind->ops.forward = opened_forward;
    kind->ops.backward = opened_backward;
    return &kind->ops;
}

/* ---- images, and the ends of a step ---- */

static int apart_hold(struct images *images)
{
    size_t len = images->n * images_len(images);
    struct images *held;

    if (images->drawn)
        return 0;
    held = malloc(sizeof(*held));
    if (!held)
        return train_fail("out of memory for what is held");
    *held = *images;
    held->pixels = apart_alloc(len);
    held->labels = apart_alloc(images->n);
    if (!held->pixels || !held->labels)
        abort();
    apart_write(held->pixels, images->pixels, len);
    apart_write(held->labels, images->labels, images->n);
    images->held = held;
    return 0;
}

static void apart_let_go(struct images *images)
{
    free(images->held);
    images->held = NULL;
}

static void apart_begin(const struct device_step *step)
{
    device_cpu.begin(step);
}

static void apart_gather(const struct images_pick *pick, float *out,
                         unsigned char *labels)
{
    struct images_pick held = *pick;

    if (!pick->images->drawn && !pick->images->held)
        abort();
    if (!pick->images->drawn)
        held.images = pick->images->held;
    OPENED(images_gather(&held, out, labels));
}

static void apart_loss(const struct loss_job *job, struct model_score *score)
{
    OPENED(device_cpu.loss(job, score));
}

static void apart_step(struct optim *optim, const struct optim_part *part)
{
    OPENED(device_cpu.step(optim, part));
}

static void apart_fini(void) { device_cpu.fini(); }

/* ---- the order of its work: each function has done it when it returns ---- */

static int apart_libraries(char *text, size_t len)
{
    return device_cpu.about.libraries(text, len);
}

static int apart_probe(char *why, size_t len)
{
    return device_cpu.about.probe(why, len);
}

static void apart_say(char *text, size_t len)
{
    device_cpu.about.say(text, len);
}

static int apart_well(void) { return 0; }

static void *apart_exchange(void) { return NULL; }

static void apart_exchanged(void) {}

static void apart_mark(int number) { (void)number; }

static const struct device device_apart = {
    .name = "apart",
    .is_async = 1,
    .most_images = 64, /* as of the processors */
    .about = {.libraries = apart_libraries,
              .probe = apart_probe,
              .say = apart_say},
    .init = apart_init,
    .fini = apart_fini,
    .layer = apart_layer,
    .values = {.block = apart_block,
               .size = apart_size,
               .read = apart_read_values,
               .add = apart_add_values},
    .order = {.well = apart_well,
              .wait = apart_well,
              .exchange = apart_exchange,
              .exchanged = apart_exchanged,
              .mark = apart_mark,
              .see = apart_mark},
    .images = {.hold = apart_hold,
               .let_go = apart_let_go,
               .gather = apart_gather},
    .alloc = apart_alloc,
    .release = apart_release,
    .write = apart_write,
    .read = apart_read,
    .copy = apart_copy,
    .zero = apart_zero,
    .add = apart_add,
    .squares = apart_squares,
    .clip = apart_clip,
    .spoil = apart_spoil,
    .pack = apart_pack,
    .unpack = apart_unpack,
    .begin = apart_begin,
    .loss = apart_loss,
    .step = apart_step,
};

const struct device *__real_device_find(const char *text, int *number);
const struct device *__wrap_device_find(const char *text, int *number);
const struct device *__wrap_device_find(const char *text, int *number)
{
    const struct device *found = __real_device_find(text, number);

    return getenv("DEVICE_APART") ? &device_apart : found;
}
