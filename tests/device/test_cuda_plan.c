/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_plan.c - the kernel that goes through a plan, compiled for the host: each
 * type and operation as a step, blocks that need each other, messages between two
 * grids, and grids that are told to stop. */
#include "tests/support/kernel_cases.h"
#include "tests/support/element.h"
#include "tests/fake_cuda/grid.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "lib/device/cuda_kernels.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_STEPS = 64 };

/* A program, as it lies on a device. */
struct program {
    struct coll__cuda_step steps[MOST_STEPS];
    uint32_t state[COLL__CUDA_STATE_WORDS(MOST_STEPS)];
    uint32_t n, stop;
};

static int run(struct program *p, unsigned blocks, unsigned threads,
               unsigned seed, void *in, void *out, void *tmp)
{
    const void *steps = p->steps, *state = p->state, *stop = &p->stop;
    void *params[] = {&steps, &p->n, &state, &stop, &in, &out, &tmp};
    struct fake_grid grid = {.entry = COLL__CUDA_PLAN,
                             .params = params,
                             .blocks = blocks,
                             .threads = threads,
                             .seed = seed};

    return fake_grid_run(&grid);
}

static struct coll__cuda_step copy(enum coll__cuda_base dst_in, uint64_t dst,
                                   enum coll__cuda_base src_in, uint64_t src,
                                   size_t len)
{
    return (struct coll__cuda_step){.what = COLL__CUDA_DO_COPY,
                                    .dst_in = dst_in,
                                    .dst = dst,
                                    .src_in = src_in,
                                    .src = src,
                                    .with_in = COLL__CUDA_NONE,
                                    .next_in = COLL__CUDA_NONE,
                                    .len = len};
}

/* ---- one step ------------------------------------------------------------ */

/* Exactly len bytes, so that the address sanitizer sees their end. */
static char *heap_alloc(size_t len) { return malloc(len); }

static void heap_release(char *ptr) { free(ptr); }

static void heap_put(char *device, const void *host, size_t len)
{
    memcpy(device, host, len);
}

static void heap_get(void *host, const char *device, size_t len)
{
    memcpy(host, device, len);
}

static void by_plan(const char *entry, unsigned blocks, unsigned threads,
                    void **params)
{
    static unsigned seed;
    struct program p = {.n = 1, .steps = {kernel_step(entry, params)}};

    (void)threads;
    seed++;
    ck_assert_int_eq(
        run(&p, blocks > 1 ? 2 : 1, 1 + seed % 2, seed, NULL, NULL, NULL), 0);
}

static struct machine planned = {.alloc = heap_alloc,
                                 .release = heap_release,
                                 .put = heap_put,
                                 .get = heap_get,
                                 .launch = by_plan,
                                 .large = 20011};

/* _i: the type. */
START_TEST(every_step_gives_what_the_host_gives)
{
    char why[512] = "";

    ck_assert_msg(!kernel_check_reductions(&planned, (enum coll_type)_i, why,
                                           sizeof(why)) &&
                      !kernel_check_others(&planned, (enum coll_type)_i, why,
                                           sizeof(why)),
                  "%s", why);
}
END_TEST

START_TEST(unknown_entries_are_no_steps)
{
    ck_assert_int_eq(coll__cuda_doing("coll_sum_f8"), -1);
    ck_assert_int_eq(coll__cuda_doing("coll_copy"), COLL__CUDA_DO_COPY);
    ck_assert_int_eq(coll__cuda_doing(coll__cuda_scale(COLL_F8E5M2)),
                     COLL__CUDA_N_DOINGS - 1);
}
END_TEST

/* ---- blocks that need each other ------------------------------------------- */

enum { LEN = 3000 };

/* Each step takes what the one before has left, some bytes further: from other blocks.
 * _i: blocks. */
START_TEST(blocks_wait_for_what_others_have_done)
{
    unsigned char in[LEN], out[LEN], tmp[2 * LEN];
    struct program p = {.n = 0};

    for (size_t i = 0; i < LEN; i++)
        in[i] = (unsigned char)(i * 7);
    p.steps[p.n++] = copy(COLL__CUDA_TMP, 0, COLL__CUDA_IN, 0, LEN);
    for (uint64_t k = 0; k < 40; k++) {
        uint64_t here = k % 2 * LEN, there = (k + 1) % 2 * LEN;

        p.steps[p.n] =
            copy(COLL__CUDA_TMP, there, COLL__CUDA_TMP, here + 13, LEN - 13);
        p.steps[p.n++].flags = COLL__CUDA_BEHIND;
    }
    p.steps[p.n] = copy(COLL__CUDA_OUT, 0, COLL__CUDA_TMP, 0, LEN - 520);
    p.steps[p.n++].flags = COLL__CUDA_BEHIND;
    for (unsigned round = 1; round <= 20; round++) {
        memset(out, 0, sizeof(out));
        memset(tmp, 0, sizeof(tmp));
        ck_assert_int_eq(
            run(&p, (unsigned)_i, 1 + round % 3, round, in, out, tmp), 0);
        ck_assert_int_eq(memcmp(out, in + 520, LEN - 520), 0);
    }
}
END_TEST

/* ---- messages ---------------------------------------------------------------- */

enum { SLOTS = 2, SLOT = 256, N_MESSAGES = 9, MESSAGE = 200 };

/* A rank's memory: slots, and two words for each, of what comes and of what goes. */
struct inbox {
    unsigned char slots[SLOTS][SLOT];
    uint32_t full[SLOTS], taken[SLOTS];
};

struct end {
    struct program program;
    struct inbox *mine, *theirs;
    unsigned char in[N_MESSAGES * MESSAGE], out[N_MESSAGES * MESSAGE];
    unsigned blocks, seed;
    int rc;
};

static uint64_t at(const void *ptr) { return (uint64_t)(uintptr_t)ptr; }

/* All of IN to the other end, and its IN to OUT.  A slot is used again when all blocks
 * have done what they had to with it. */
static void exchange(struct end *e)
{
    struct program *p = &e->program;

    for (int i = 0; i < N_MESSAGES; i++) {
        int k = i % SLOTS;
        uint64_t off = (uint64_t)i * MESSAGE;
        struct coll__cuda_step send =
            copy(COLL__CUDA_HERE, at(e->theirs->slots[k]), COLL__CUDA_IN, off,
                 MESSAGE);
        struct coll__cuda_step recv = copy(COLL__CUDA_OUT, off, COLL__CUDA_HERE,
                                           at(e->mine->slots[k]), MESSAGE);

        send.flags = COLL__CUDA_SENDS | (i >= SLOTS ? COLL__CUDA_BEHIND : 0);
        send.send.own = at(&e->mine->taken[k]);
        send.send.theirs = at(&e->theirs->full[k]);
        recv.flags = COLL__CUDA_RECEIVES;
        recv.recv.own = at(&e->mine->full[k]);
        recv.recv.theirs = at(&e->theirs->taken[k]);
        p->steps[p->n++] = send;
        p->steps[p->n++] = recv;
    }
}

static void *run_end(void *arg)
{
    struct end *e = arg;

    e->rc = run(&e->program, e->blocks, 2, e->seed, e->in, e->out, NULL);
    return NULL;
}

static void run_ends(struct end *a, struct end *b)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, run_end, a), 0);
    run_end(b);
    pthread_join(thread, NULL);
}

/* _i: blocks of one end; the other has one more. */
START_TEST(messages_arrive_run_after_run)
{
    static struct end a, b;
    static struct inbox of_a, of_b;

    a.mine = b.theirs = &of_a;
    b.mine = a.theirs = &of_b;
    a.blocks = (unsigned)_i;
    b.blocks = (unsigned)_i + 1;
    exchange(&a);
    exchange(&b);
    for (unsigned n = 0; n < 30; n++) {
        for (size_t i = 0; i < sizeof(a.in); i++) {
            a.in[i] = (unsigned char)(i + n);
            b.in[i] = (unsigned char)(3 * i + 5 * n);
        }
        a.seed = n;
        b.seed = 2 * n + 1;
        run_ends(&a, &b);
        ck_assert(!a.rc && !b.rc);
        ck_assert(!memcmp(a.in, b.out, sizeof(a.in)));
        ck_assert(!memcmp(b.in, a.out, sizeof(a.in)));
    }
    for (int k = 0; k < SLOTS; k++)
        ck_assert(!of_a.full[k] && !of_a.taken[k] && !of_b.full[k] &&
                  !of_b.taken[k]);
}
END_TEST

/* What comes is kept in OUT and goes back as it is taken; odd ones are not kept. */
static void echo(struct end *e)
{
    struct program *p = &e->program;

    for (int i = 0; i < N_MESSAGES; i++) {
        int k = i % SLOTS;
        struct coll__cuda_step *step = &p->steps[p->n++];
        uint64_t there = at(e->theirs->slots[k]);

        *step = copy(i % 2 ? COLL__CUDA_HERE : COLL__CUDA_OUT,
                     i % 2 ? there : (uint64_t)i * MESSAGE, COLL__CUDA_HERE,
                     at(e->mine->slots[k]), MESSAGE);
        if (i % 2 == 0) {
            step->next_in = COLL__CUDA_HERE;
            step->next = there;
        }
        step->flags = COLL__CUDA_SENDS | COLL__CUDA_RECEIVES |
                      (i >= SLOTS ? COLL__CUDA_BEHIND : 0);
        step->send.own = at(&e->mine->taken[k]);
        step->send.theirs = at(&e->theirs->full[k]);
        step->recv.own = at(&e->mine->full[k]);
        step->recv.theirs = at(&e->theirs->taken[k]);
    }
}

/* _i: blocks of one end; the other has one more. */
START_TEST(what_comes_is_passed_on_run_after_run)
{
    static struct end a, b;
    static struct inbox of_a, of_b;

    a.mine = b.theirs = &of_a;
    b.mine = a.theirs = &of_b;
    a.blocks = (unsigned)_i;
    b.blocks = (unsigned)_i + 1;
    exchange(&a);
    echo(&b);
    for (unsigned n = 0; n < 30; n++) {
        for (size_t i = 0; i < sizeof(a.in); i++)
            a.in[i] = (unsigned char)(i + 3 * n);
        a.seed = n;
        b.seed = 2 * n + 1;
        run_ends(&a, &b);
        ck_assert(!a.rc && !b.rc);
        ck_assert(!memcmp(a.in, a.out, sizeof(a.in)));
        for (size_t i = 0; i < sizeof(a.in); i++)
            ck_assert_int_eq(b.out[i], i / MESSAGE % 2 ? 0 : a.in[i]);
    }
    for (int k = 0; k < SLOTS; k++)
        ck_assert(!of_a.full[k] && !of_a.taken[k] && !of_b.full[k] &&
                  !of_b.taken[k]);
}
END_TEST

/* All of IN is shown to the other end, and that one's copied from there. */
static void show(struct end *e, const struct end *other)
{
    struct program *p = &e->program;

    for (int i = 0; i < N_MESSAGES; i++) {
        int k = i % SLOTS;
        uint64_t off = (uint64_t)i * MESSAGE;
        struct coll__cuda_step send = {.flags =
                                           COLL__CUDA_SENDS,
                                       .with_in = COLL__CUDA_NONE,
                                       .next_in = COLL__CUDA_NONE};
        struct coll__cuda_step recv = copy(COLL__CUDA_OUT, off, COLL__CUDA_HERE,
                                           at(other->in + off), MESSAGE);

        send.send.own = at(&e->mine->taken[k]);
        send.send.theirs = at(&e->theirs->full[k]);
        recv.flags = COLL__CUDA_RECEIVES;
        recv.recv.own = at(&e->mine->full[k]);
        recv.recv.theirs = at(&e->theirs->taken[k]);
        p->steps[p->n++] = send;
        p->steps[p->n++] = recv;
    }
    for (int k = 0; k < SLOTS; k++) {
        p->steps[p->n] = p->steps[2 * k];
        p->steps[p->n++].flags = COLL__CUDA_SETTLES;
    }
}

static void make_showing(struct end *a, struct end *b, struct inbox *of_a,
                         struct inbox *of_b)
{
    a->mine = b->theirs = of_a;
    b->mine = a->theirs = of_b;
    show(a, b);
    show(b, a);
}

static unsigned char shown(unsigned n, size_t i)
{
    return (unsigned char)(i * 3 + n * 7);
}

/* Each end writes to IN again as soon as its own run has ended. */
static void *run_showing(void *arg)
{
    struct end *e = arg;

    for (unsigned n = 0; n < 40 && !e->rc; n++) {
        for (size_t i = 0; i < sizeof(e->in); i++)
            e->in[i] = shown(n, i);
        e->rc =
            run(&e->program, e->blocks, 2, e->seed + n, e->in, e->out, NULL);
        for (size_t i = 0; i < sizeof(e->out) && !e->rc; i++)
            e->rc = e->out[i] != shown(n, i);
    }
    return NULL;
}

/* _i: blocks of one end; the other has one more. */
START_TEST(what_is_shown_stays_until_it_is_taken)
{
    static struct end a, b;
    static struct inbox of_a, of_b;
    pthread_t thread;

    make_showing(&a, &b, &of_a, &of_b);
    a.blocks = (unsigned)_i;
    b.blocks = (unsigned)_i + 1;
    b.seed = 1000;
    ck_assert_int_eq(pthread_create(&thread, NULL, run_showing, &a), 0);
    run_showing(&b);
    pthread_join(thread, NULL);
    ck_assert(!a.rc && !b.rc);
    for (int k = 0; k < SLOTS; k++)
        ck_assert(!of_a.full[k] && !of_a.taken[k] && !of_b.full[k] &&
                  !of_b.taken[k]);
}
END_TEST

/* The other end never comes. */
START_TEST(who_waits_leaves_when_told_to)
{
    static struct end a;
    static struct inbox of_a, of_b;
    pthread_t thread;

    a.mine = &of_a;
    a.theirs = &of_b;
    a.blocks = (unsigned)_i;
    exchange(&a);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_end, &a), 0);
    usleep(20000);
    __atomic_store_n(&a.program.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    ck_assert_int_eq(a.rc, 0);
    ck_assert_int_eq(of_b.full[0], 1);
}
END_TEST

/* ---- all of it ---------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("cuda plan");
    TCase *tc = tcase_create("plan");

    tcase_add_loop_test(tc, every_step_gives_what_the_host_gives, 0,
                        part_of(COLL_N_TYPES));
    tcase_add_test(tc, unknown_entries_are_no_steps);
    tcase_add_loop_test(tc, blocks_wait_for_what_others_have_done, 1, 6);
    tcase_add_loop_test(tc, messages_arrive_run_after_run, 1, 5);
    tcase_add_loop_test(tc, what_comes_is_passed_on_run_after_run, 1, 5);
    tcase_add_loop_test(tc, what_is_shown_stays_until_it_is_taken, 1, 5);
    tcase_add_loop_test(tc, who_waits_leaves_when_told_to, 1, 4);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
