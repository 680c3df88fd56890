/* SPDX-License-Identifier: BSD-3-Clause */
/* loader.c - two buffers that are swapped: one belongs to the model, one to the loader.
 *
 * Who owns what: while `state` is BEGUN the loader thread owns the pick, what
 * it points to and the spare buffers, and uses them without the lock.  In every
 * other state the training thread owns them.  `state` and `is_ending` change
 * under the lock, which orders the rest: the loader sees what was written
 * before ASKED, and the training thread sees the images that were written
 * before FULL.
 *
 * The loader's thread is late if it gets no core.  If it has not begun to gather images
 * when they are needed, the training thread takes the request back and gathers them
 * itself.
 *
 * The loader waits only for the training thread, and calls neither libcoll nor
 * oneDNN: ranks that die, aborts and errors are noticed by the training thread,
 * which then ends the loader.  The loader receives no signals.
 */
#include "trainer/loader.h"
#include "trainer/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum state { EMPTY, ASKED, BEGUN, FULL };

struct loader {
    struct model *model;
    const struct device *device;
    /* of the device, as the spare ones: labels of the images that are with the model */
    unsigned char *labels;
    struct images_pick pick; /* that `spare` is for */
    float *spare;
    unsigned char *spare_labels;
    int has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* state or is_ending */
    enum state state;
    int is_ending;
};

/* ---- the thread ---- */

static void *run(void *arg)
{
    struct loader *l = arg;

    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (l->state != ASKED && !l->is_ending)
            pthread_cond_wait(&l->changed, &l->lock);
        if (l->is_ending)
            break;
        l->state = BEGUN;
        pthread_mutex_unlock(&l->lock);
        l->device->images.gather(&l->pick, l->spare, l->spare_labels);
        pthread_mutex_lock(&l->lock);
        l->state = FULL;
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int start(struct loader *l)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&l->thread, NULL, run, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return train_fail("cannot start a thread that loads images: %s; see "
                          "ulimit -u, or give --prefetch off",
                          strerror(rc));
    l->has_thread = 1;
    pthread_setname_np(l->thread, "coll-loader");
    return 0;
}

static void end(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_ending = 1;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
}

/* ---- who trains ---- */

int loader_create(struct loader **loader, struct model *model,
                  const struct device *device, int has_thread)
{
    size_t chunk = (size_t)model_chunk(model);
    struct loader *l = calloc(1, sizeof(*l));

    if (!l)
        return train_fail("out of memory for a loader of images");
    l->model = model;
    l->device = device;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    l->labels = device->alloc(chunk);
    l->spare_labels = device->alloc(chunk);
    if (has_thread)
        l->spare = device->alloc(chunk * shape_len(&model_layer(model, 0)->in) *
                                 device->values.size());
    if (!l->labels || !l->spare_labels || (has_thread && !l->spare)) {
        train_fail("out of memory for %zu images more; give --prefetch off or "
                   "lower --batch-size",
                   chunk);
        goto fail;
    }
    if (has_thread && start(l))
        goto fail;
    *loader = l;
    return 0;

fail:
    loader_destroy(l);
    return -1;
}

void loader_destroy(struct loader *l)
{
    if (!l)
        return;
    if (l->has_thread)
        end(l);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    l->device->release(l->spare);
    l->device->release(l->spare_labels);
    l->device->release(l->labels);
    free(l);
}

void loader_ask(struct loader *l, const struct images_pick *pick)
{
    if (!l->has_thread)
        return;
    l->pick = *pick;
    pthread_mutex_lock(&l->lock);
    l->state = ASKED;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* End the current request: wait for it if the loader has begun it, else take it back.
 * Returns 1 if its images are in the spare buffer. */
static int finish(struct loader *l)
{
    int is_full;

    if (!l->has_thread)
        return 0;
    pthread_mutex_lock(&l->lock);
    while (l->state == BEGUN)
        pthread_cond_wait(&l->changed, &l->lock);
    is_full = l->state == FULL;
    l->state = EMPTY;
    pthread_mutex_unlock(&l->lock);
    return is_full;
}

static int is_same(const struct images_pick *a, const struct images_pick *b)
{
    return a->images == b->images && a->index == b->index && a->n == b->n &&
           a->scale == b->scale && a->augment == b->augment &&
           a->key == b->key && a->first == b->first;
}

const unsigned char *loader_take(struct loader *l,
                                 const struct images_pick *pick)
{
    if (finish(l) && is_same(pick, &l->pick)) {
        unsigned char *labels = l->spare_labels;

        l->spare_labels = l->labels;
        l->labels = labels;
        l->spare = model_change_input(l->model, l->spare);
    } else {
        l->device->images.gather(pick, model_input(l->model), l->labels);
    }
    return l->labels;
}

void loader_drop(struct loader *l)
{
    if (l)
        finish(l);
}
