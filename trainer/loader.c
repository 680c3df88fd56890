/* SPDX-License-Identifier: BSD-3-Clause */
/* loader.c - two buffers, one with the model and one here, that change places.
 *
 * Who owns what: while `state` is BEGUN the pick, what it points to and the spare
 * buffers are the loader thread's, which reads and writes them without the lock;
 * in every other state they are the training thread's.  `state` and `is_ending`
 * change under the lock, and its release by the one thread and acquisition by the
 * other carry the rest: what was written before ASKED is seen by the loader, and
 * the images that it wrote before FULL by who takes them.
 *
 * A thread that has no core comes late: what it has not begun with by the time it
 * is wanted the training thread takes back, and gathers itself.
 *
 * The thread waits for nobody but the one that trains, and calls neither libcoll
 * nor oneDNN: ranks that die, aborts and errors are the training thread's to
 * notice, which then ends it.  Signals are not for it.
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
    unsigned char *labels; /* of the images that are with the model */
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
        l->device->gather(&l->pick, l->spare, l->spare_labels);
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
    l->labels = calloc(chunk, 1);
    l->spare_labels = calloc(chunk, 1);
    if (has_thread)
        l->spare = device->alloc(chunk * shape_len(&model_layer(model, 0)->in));
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
    free(l->spare_labels);
    free(l->labels);
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

/* Take back what was asked for, or wait for it where it has begun; return whether
 * it is there. */
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
        l->device->gather(pick, model_input(l->model), l->labels);
    }
    return l->labels;
}

void loader_drop(struct loader *l) { finish(l); }
