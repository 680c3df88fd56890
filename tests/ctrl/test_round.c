/* SPDX-License-Identifier: BSD-3-Clause */
/* test_round.c - questions to all ranks of trees of up to 16,384, in one process:
 * the product's own code over links and a clock that are the test's.
 *
 * The linker gives coll__link_send(), the clock and the reactor's times to what is
 * here (local.mk): a message takes a moment, each longer or shorter, in
 * order between two ranks; a rank that is silent neither reads nor writes. */
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 16384
#define N_STARTED 42

/* ---- the stage ------------------------------------------------------------- */

struct message {
    struct message *next;
    struct coll__link *to;
    struct coll__frame frame;
    unsigned char *body;
    double when;
};

static struct coll__ctrl *tree;
static unsigned char *is_silent;
static uint64_t
    *wanted; /* the operation each rank wants to hear about, 0 none */
static struct message **arriving; /* [MOST * 2]: a heap by time */
static size_t n_arriving, room;
static double now;
static double *last_to_up,
    *last_to_down; /* the latest on each rank's up link */
static uint64_t most_of_a_rank;
static size_t n_bytes[MOST]; /* of frames, sent and received */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_coll__link_send(struct coll__link *link,
                           const struct coll__frame *frame, const void *body);
void __wrap_coll__reactor_defer_until(struct coll__task *task, double when);
void __wrap_coll__reactor_cancel(struct coll__task *task);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!tree)
        return __real_clock_gettime(clock, time);
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)((now - (double)time->tv_sec) * 1e9);
    return 0;
}

void __wrap_coll__reactor_defer_until(struct coll__task *task, double when)
{
    task->is_queued = 1;
    task->when = when;
}

void __wrap_coll__reactor_cancel(struct coll__task *task)
{
    task->is_queued = 0;
}

static void swap(size_t a, size_t b)
{
    struct message *m = arriving[a];

    arriving[a] = arriving[b];
    arriving[b] = m;
}

static void put(struct message *m)
{
    size_t i = n_arriving++;

    if (n_arriving > room) {
        room = room ? 2 * room : 1024;
        arriving = realloc(arriving, room * sizeof(struct message *));
        ck_assert_ptr_nonnull(arriving);
    }
    arriving[i] = m;
    for (; i && arriving[i]->when < arriving[(i - 1) / 2]->when;
         i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static struct message *get(void)
{
    struct message *m = arriving[0];
    size_t i = 0, j;

    arriving[0] = arriving[--n_arriving];
    while ((j = 2 * i + 1) < n_arriving) {
        j += j + 1 < n_arriving && arriving[j + 1]->when < arriving[j]->when;
        if (arriving[i]->when <= arriving[j]->when)
            break;
        swap(i, j);
        i = j;
    }
    return m;
}

/* Between 10 and 110 us, behind the one before. */
static double arrival(double *last)
{
    double when = now + 10e-6 + 100e-6 * rand() / RAND_MAX;

    if (when <= *last)
        when = *last + 1e-9;
    return *last = when;
}

int __wrap_coll__link_send(struct coll__link *link,
                           const struct coll__frame *frame, const void *body)
{
    struct message *m = calloc(1, sizeof(*m));
    struct coll__ctrl *peer = &tree[link->peer];
    int is_upward = link->peer < link->self;
    int child = is_upward ? link->self : link->peer, j = 0;

    ck_assert_ptr_nonnull(m);
    while (is_upward && peer->tree.down[j].peer != child)
        j++;
    m->to = is_upward ? &peer->tree.down[j] : &peer->tree.up;
    n_bytes[link->self] += frame->len;
    n_bytes[link->peer] += frame->len;
    m->frame = *frame;
    m->body = malloc(frame->len + 1);
    ck_assert_ptr_nonnull(m->body);
    if (frame->len)
        memcpy(m->body, body, frame->len);
    m->when = arrival(is_upward ? &last_to_up[child] : &last_to_down[child]);
    put(m);
    return COLL_OK;
}

/* Rank r of the tree has started N_STARTED operations, and one more where it is a
 * multiple of 100. */
static enum coll__verdict judge(void *arg, const struct coll__ctrl_call *call,
                                int is_gathering, char text[COLL__TEXT_MAX])
{
    uint64_t n = N_STARTED + (uint64_t)(*(int *)arg % 100 == 0);

    (void)is_gathering;
    snprintf(text, COLL__TEXT_MAX, "in %d", *(int *)arg);
    return n < call->sig.seq ? VERDICT_LATE : VERDICT_HERE;
}

static void raise_curtain(int size)
{
    now = 1;
    n_arriving = 0;
    memset(n_bytes, 0, sizeof(n_bytes));
    tree = calloc((size_t)size, sizeof(*tree));
    is_silent = calloc((size_t)size, 1);
    last_to_up = calloc((size_t)size, sizeof(*last_to_up));
    last_to_down = calloc((size_t)size, sizeof(*last_to_down));
    ck_assert(tree && is_silent && last_to_up && last_to_down);
    for (int r = 0; r < size; r++) {
        struct coll__ctrl *ctrl = &tree[r];

        ctrl->rank = r;
        ctrl->size = size;
        ctrl->tree.n_children = coll__tree_n_children(r, size);
        ctrl->is_open = 1;
        ctrl->events = (struct coll__ctrl_events){NULL, judge, &ctrl->rank};
        pthread_cond_init(&ctrl->changed, NULL);
        coll__ctrl_round_init(ctrl);
        coll__ctrl_link_init(ctrl, &ctrl->tree.up, coll__tree_parent(r, size));
        ctrl->tree.up.state = r ? LINK_UP : LINK_DOWN;
        for (int j = 0; j < ctrl->tree.n_children; j++) {
            coll__ctrl_link_init(ctrl, &ctrl->tree.down[j],
                                 coll__tree_child(r, size, j));
            ctrl->tree.down[j].state = LINK_UP;
        }
    }
}

static void drop_curtain(void)
{
    free(tree);
    tree = NULL;
    free(wanted);
    wanted = NULL;
    free(is_silent);
    free(last_to_up);
    free(last_to_down);
    free(arriving);
    arriving = NULL;
    room = 0;
}

static struct coll__ctrl_call call_of(int rank, uint64_t seq)
{
    return (struct coll__ctrl_call){
        .rank = rank,
        .peer = -1,
        .sig = {.seq = seq, .collective = COLL_BARRIER}};
}

/* A rank that waits looks often: what it wants to hear, it hears when it is there. */
static void look(int rank)
{
    struct coll__ctrl_call call;
    struct coll__ctrl_roll roll;

    if (!wanted || !wanted[rank])
        return;
    call = call_of(rank, wanted[rank]);
    if (coll__ctrl_heard(&tree[rank], &call, 1, &roll))
        wanted[rank] = 0;
}

static void deliver(struct message *m)
{
    struct coll__ctrl *ctrl = m->to->owner;
    int rank = ctrl->rank;

    now = m->when;
    if (is_silent[rank])
        free(m->body);
    else
        ck_assert_int_eq(m->to->got(m->to, &m->frame, m->body), 0);
    free(m);
    look(rank);
}

/* The task that is next, of ranks that are not silent. */
static struct coll__task *next_task(int size)
{
    struct coll__task *next = NULL;

    for (int r = 0; r < size; r++) {
        struct coll__task *task = &tree[r].round.give_up;

        if (task->is_queued && !is_silent[r] &&
            (!next || task->when < next->when))
            next = task;
    }
    return next;
}

/* Until nothing is under way.  Messages are faster than anybody's patience. */
static void play(int size)
{
    struct coll__task *task;

    for (;;) {
        while (n_arriving)
            deliver(get());
        task = next_task(size);
        if (!task)
            return;
        now = task->when > now ? task->when : now;
        task->is_queued = 0;
        task->run(task);
    }
}

static void ask(int rank, uint64_t seq, double since)
{
    struct coll__ctrl_call call = call_of(rank, seq);
    double asked;

    ck_assert_int_eq(coll__ctrl_ask(&tree[rank], &call, since, &asked), 1);
}

static uint64_t count(int size)
{
    uint64_t n = 0;

    most_of_a_rank = 0;
    for (int r = 0; r < size; r++) {
        n += tree[r].n_questions;
        if (tree[r].n_questions > most_of_a_rank)
            most_of_a_rank = tree[r].n_questions;
    }
    return n;
}

/* ---- how many -------------------------------------------------------------- */

static const int sizes[] = {2, 3, 7, 64, 65, 1000, 4097, MOST};

/* All ranks ask, one after the other at any distance in time, some before the
 * first question has gone round and some behind it. */
START_TEST(all_that_ask_cost_what_one_costs)
{
    int p = sizes[_i];
    struct coll__ctrl_roll roll;
    double since;

    srand((unsigned)_i + 1);
    raise_curtain(p);
    since = now;
    for (int i = 0; i < p; i++) {
        ask((i * 7919) % p, N_STARTED + 1, since);
        for (int n = rand() % 5; n && n_arriving; n--)
            deliver(get());
    }
    play(p);
    ck_assert_uint_le(count(p), 4ull * (unsigned)(p - 1));
    ck_assert_uint_ge(count(p), 3ull * (unsigned)(p - 1));
    ck_assert_uint_le(most_of_a_rank, 2ull * (1 + COLL__MAX_CHILDREN));
    for (int r = 0; r < p; r++) {
        struct coll__ctrl_call call = call_of(r, N_STARTED + 1);

        ck_assert(coll__ctrl_heard(&tree[r], &call, since, &roll));
        ck_assert_int_eq(roll.n_late, p - (p + 99) / 100);
        ck_assert_int_eq(roll.late[0], 1);
        ck_assert_str_eq(roll.text, "in 1");
    }
    drop_curtain();
}
END_TEST

static int count_wanted(int size)
{
    int n = 0;

    for (int r = 0; r < size; r++)
        n += wanted[r] != 0;
    return n;
}

/* Operations differ: of what is wanted the earliest comes first, and who was not
 * passed on for it asks again. */
START_TEST(each_operation_costs_a_round)
{
    int p = sizes[_i], n_ops = 3, n_times = 0;

    srand((unsigned)_i + 1);
    raise_curtain(p);
    wanted = calloc((size_t)p, sizeof(*wanted));
    ck_assert_ptr_nonnull(wanted);
    for (int r = 0; r < p; r++)
        wanted[r] = N_STARTED + (uint64_t)(r % n_ops);
    now += 1e-6;
    while (count_wanted(p)) {
        ck_assert_int_lt(n_times++, n_ops);
        for (int r = 0; r < p; r++)
            if (wanted[r]) {
                ask(r, wanted[r], 1);
                for (int n = rand() % 5; n && n_arriving; n--)
                    deliver(get());
            }
        play(p);
    }
    ck_assert_uint_le(count(p), 2ull * 4 * (unsigned)((p - 1) * n_ops));
    drop_curtain();
}
END_TEST

/* ---- who is silent --------------------------------------------------------- */

/* _i: the number of ranks; any one of them is silent, and any other one asks. */
START_TEST(one_that_is_silent_costs_no_answer_but_those_behind_it)
{
    struct coll__ctrl_roll roll;

    for (int silent = 0; silent < _i; silent++)
        for (int r = 0; r < _i; r++) {
            struct coll__ctrl_call call = call_of(r, N_STARTED);
            double since, until;
            int span = coll__tree_span(silent, _i), is_below;

            if (r == silent)
                continue;
            raise_curtain(_i);
            is_silent[silent] = 1;
            since = now;
            until = since + coll__ctrl_answer_time(&tree[r]);
            ask(r, N_STARTED, since);
            play(_i);
            ck_assert(coll__ctrl_heard(&tree[r], &call, since, &roll));
            is_below = r > silent && r < silent + span;
            ck_assert_int_eq(roll.n_silent, is_below ? 1 : span);
            ck_assert_int_eq(roll.silent[0], silent);
            ck_assert_msg(tree[r].round.ended <= until,
                          "silent %d, asked by %d: %g s", silent, r,
                          tree[r].round.ended - since);
            drop_curtain();
        }
}
END_TEST

/* ---- exchanges -------------------------------------------------------------- */

/* Every rank hears and passes on what is below it, then hears all once and passes
 * it on twice: five times all blocks at most. */
START_TEST(an_exchange_costs_each_rank_a_few_times_its_length)
{
    int p = min_int(sizes[_i], 1000);
    uint64_t *all = calloc((size_t)p, sizeof(*all));

    ck_assert_ptr_nonnull(all);
    srand((unsigned)_i + 1);
    raise_curtain(p);
    for (int r = 0; r < p; r++) {
        uint64_t mine = (uint64_t)r * 3;

        ck_assert_int_eq(coll__ctrl_gather_start(&tree[r], PURPOSE_GATHER,
                                                 &mine, sizeof(mine)),
                         COLL_OK);
        for (int n = rand() % 3; n && n_arriving; n--)
            deliver(get());
    }
    play(p);
    for (int r = 0; r < p; r++) {
        ck_assert_int_eq(coll__ctrl_gather_end(&tree[r], all, now, -1),
                         COLL_OK);
        for (int i = 0; i < p; i++)
            ck_assert_uint_eq(all[i], (uint64_t)i * 3);
        ck_assert_msg(n_bytes[r] <= 5 * (size_t)p * sizeof(*all),
                      "rank %d of %d: %zu bytes", r, p, n_bytes[r]);
    }
    free(all);
    drop_curtain();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("round");
    TCase *c = tcase_create("round");

    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, all_that_ask_cost_what_one_costs, 0,
                        (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(c, each_operation_costs_a_round, 0,
                        (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(
        c, one_that_is_silent_costs_no_answer_but_those_behind_it, 2, 34);
    tcase_add_loop_test(c, an_exchange_costs_each_rank_a_few_times_its_length,
                        0, (int)ARRAY_LEN(sizes));
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
