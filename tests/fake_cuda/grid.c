/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.c - blocks and threads of a kernel as threads of this process. */
#include "tests/fake_cuda/grid.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct playing {
    const struct fake_grid *grid;
    atomic_int is_over; /* a thread has reached for what is not there */
    atomic_int status;  /* of the entry */
};

struct block {
    struct playing *of;
    unsigned number, n_left;
    pthread_mutex_t lock;
    pthread_cond_t all_have_come;
    unsigned n_come, n_meetings;
    int is_so, was_so; /* of this meeting, of the one before */
};

struct thread {
    struct block *block;
    unsigned number;
    jmp_buf out;
    unsigned n_rests;
};

static __thread struct thread *me;

static int is_over(struct playing *p)
{
    return atomic_load(&p->is_over) ||
           (p->grid->is_lost && p->grid->is_lost(p->grid->arg));
}

/* Out of the kernel, from wherever it is; whoever waits in its block comes along. */
static _Noreturn void leave(void)
{
    struct block *b = me->block;

    atomic_store(&b->of->is_over, 1);
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->all_have_come);
    pthread_mutex_unlock(&b->lock);
    longjmp(me->out, 1);
}

/* ---- what kernels call --------------------------------------------------- */

void *fake_grid_reach(uint64_t at, size_t len)
{
    const struct fake_grid *g;
    void *here;

    if (!me || !me->block->of->grid->reach)
        return (void *)at;
    g = me->block->of->grid;
    here = len ? g->reach(g->arg, at, len) : NULL;
    if (len && !here)
        leave();
    return here;
}

/* Others need the processor, the more the longer they have not come. */
void fake_grid_rest(void)
{
    if (is_over(me->block->of))
        leave();
    if (me->n_rests++ % 256 < 32)
        sched_yield();
    else
        usleep(50);
}

int fake_grid_sync(int is_so)
{
    struct block *b = me->block;
    unsigned meeting;
    int all, is_lost;

    pthread_mutex_lock(&b->lock);
    meeting = b->n_meetings;
    b->is_so |= is_so;
    if (++b->n_come == b->of->grid->threads) {
        b->was_so = b->is_so;
        b->is_so = 0;
        b->n_come = 0;
        b->n_meetings++;
        pthread_cond_broadcast(&b->all_have_come);
    }
    while (b->n_meetings == meeting && !atomic_load(&b->of->is_over))
        pthread_cond_wait(&b->all_have_come, &b->lock);
    is_lost = b->n_meetings == meeting;
    all = b->was_so;
    pthread_mutex_unlock(&b->lock);
    if (is_lost)
        leave();
    return all;
}

/* ---- playing ------------------------------------------------------------- */

static void *play(void *arg)
{
    struct thread *t = arg;
    struct block *b = t->block;
    const struct fake_grid *g = b->of->grid;
    int is_last;

    me = t;
    if (!setjmp(t->out) && fake_kernel_thread(g->entry, g->params, g->blocks,
                                              b->number, g->threads, t->number))
        atomic_store(&b->of->status, -1);
    me = NULL;
    pthread_mutex_lock(&b->lock);
    is_last = --b->n_left == 0;
    pthread_mutex_unlock(&b->lock);
    if (is_last && g->leave)
        g->leave(g->arg);
    return NULL;
}

/* Numbers below n in any order. */
static void shuffle(unsigned *order, unsigned n, unsigned *seed)
{
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; *seed && i > 1; i--) {
        unsigned k, was = order[i - 1];

        *seed = *seed * 1664525u + 1013904223u;
        k = (*seed >> 16) % i;
        order[i - 1] = order[k];
        order[k] = was;
    }
}

static void start(struct thread *t, pthread_t *thread)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 512 << 10);
    if (pthread_create(thread, &attr, play, t))
        abort();
    pthread_attr_destroy(&attr);
}

/* The last one is the caller itself. */
static void start_block(struct block *b, struct thread *threads, pthread_t *ids,
                        int is_last, unsigned *seed)
{
    const struct fake_grid *g = b->of->grid;
    unsigned order[32];

    if (g->enter)
        g->enter(g->arg);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->all_have_come, NULL);
    b->n_left = g->threads;
    shuffle(order, g->threads, seed);
    for (unsigned i = 0; i < g->threads; i++) {
        threads[i] = (struct thread){.block = b, .number = order[i]};
        if (is_last && i == g->threads - 1)
            play(&threads[i]);
        else
            start(&threads[i], &ids[i]);
    }
}

int fake_grid_run(const struct fake_grid *g)
{
    struct playing p = {.grid = g};
    unsigned n = g->blocks * g->threads, seed = g->seed;
    struct block *blocks = calloc(g->blocks, sizeof(*blocks));
    struct thread *threads = calloc(n, sizeof(*threads));
    pthread_t *ids = calloc(n, sizeof(*ids));
    unsigned *order = calloc(g->blocks, sizeof(*order));

    if (!blocks || !threads || !ids || !order || g->threads > 32)
        abort();
    shuffle(order, g->blocks, &seed);
    for (unsigned i = 0; i < g->blocks; i++) {
        struct block *b = &blocks[i];

        b->of = &p;
        b->number = order[i];
        if (seed && seed >> 28 == 0)
            usleep(seed >> 16 & 63);
        start_block(b, &threads[i * g->threads], &ids[i * g->threads],
                    i == g->blocks - 1, &seed);
    }
    for (unsigned i = 0; i < n - 1; i++)
        pthread_join(ids[i], NULL);
    for (unsigned i = 0; i < g->blocks; i++) {
        pthread_cond_destroy(&blocks[i].all_have_come);
        pthread_mutex_destroy(&blocks[i].lock);
    }
    free(blocks);
    free(threads);
    free(ids);
    free(order);
    return p.status ? -1 : p.is_over;
}
