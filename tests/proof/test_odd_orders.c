/* SPDX-License-Identifier: BSD-3-Clause */
/* test_odd_orders.c - persistent requests started anew in every order, while
 * communicators are made and end beside them, groups lie in groups, and
 * the process forks in between; with and without the progress thread. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 100
#define N_COMMS 4
#define N_KINDS 5 /* of requests of each: three sums, a send and a receive */
#define N_STEPS 120
#define MOST 40000 /* elements */

struct op {
    struct coll_request *request;
    int is_running, number; /* of its last start */
    size_t count;
    int *in, *out;
};

struct place {
    struct coll_comm *comm;
    struct op ops[N_KINDS];
};

struct scene {
    struct world_rank *me;
    struct place places[N_COMMS]; /* the first one stays */
    unsigned script, own; /* all ranks' random numbers, and this one's */
    int n_starts;
};

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int value_of(int number, int rank, size_t i)
{
    return rank * 31 + number * 7 + (int)(i % 1021);
}

/* ---- requests -------------------------------------------------------------- */

static int make_op(struct scene *s, struct place *place, int kind)
{
    static const size_t counts[N_KINDS] = {1, 3000, MOST, 500, 500};
    int p = s->me->size, r = s->me->rank;
    struct op *op = &place->ops[kind];
    struct coll_args args = {.size = sizeof(args),
                             .collective = kind < 3    ? COLL_ALLREDUCE
                                           : kind == 3 ? COLL_SEND
                                                       : COLL_RECV,
                             .root = kind < 3    ? 0
                                     : kind == 3 ? (r + 1) % p
                                                 : (r + p - 1) % p,
                             .type = COLL_I32,
                             .op = COLL_SUM};

    *op = (struct op){.count = counts[kind]};
    args.count = op->count;
    args.in = op->in = calloc(op->count, sizeof(int));
    args.out = op->out = calloc(op->count, sizeof(int));
    WORLD_CHECK(s->me, op->in && op->out);
    if (kind == 3)
        args.out = NULL;
    if (kind == 4)
        args.in = NULL;
    WORLD_CHECK(s->me, !coll_request_create(&args, place->comm, &op->request));
    return 0;
}

static int start_op(struct scene *s, struct op *op)
{
    op->number = s->n_starts;
    for (size_t i = 0; i < op->count; i++)
        op->in[i] = value_of(op->number, s->me->rank, i);
    WORLD_CHECK(s->me, !coll_start(op->request));
    op->is_running = 1;
    return 0;
}

static int finish_op(struct scene *s, struct op *op, int kind)
{
    int p = s->me->size, left = (s->me->rank + p - 1) % p;

    if (!op->is_running)
        return 0;
    WORLD_CHECK(s->me, !coll_wait(op->request, 0));
    op->is_running = 0;
    for (size_t i = 0; kind != 3 && i < op->count; i++) {
        int want = kind == 4 ? value_of(op->number, left, i) : 0;

        for (int r = 0; kind < 3 && r < p; r++)
            want += value_of(op->number, r, i);
        WORLD_CHECK(s->me, op->out[i] == want);
    }
    return 0;
}

/* Its send and receive start and end together: else a rank waits for one that has
 * not been started. */
static int start_some(struct scene *s, struct place *place)
{
    int kind = (int)(next_random(&s->script) % 4);

    s->n_starts++;
    for (int k = kind; k <= (kind == 3 ? 4 : kind); k++)
        if (finish_op(s, &place->ops[k], k) || start_op(s, &place->ops[k]))
            return 1;
    return 0;
}

/* As many as this rank likes, in its own order. */
static int finish_some(struct scene *s)
{
    for (unsigned n = next_random(&s->own) % 8; n; n--) {
        struct place *place = &s->places[next_random(&s->own) % N_COMMS];
        int kind = (int)(next_random(&s->own) % N_KINDS);

        if (place->comm && finish_op(s, &place->ops[kind], kind))
            return 1;
    }
    return 0;
}

/* ---- communicators --------------------------------------------------------- */

static int settle(struct scene *s, struct place *place)
{
    WORLD_CHECK(s->me, place->comm);
    for (int kind = 0; kind < N_KINDS; kind++)
        if (make_op(s, place, kind))
            return 1;
    return 0;
}

static int leave(struct scene *s, struct place *place)
{
    for (int n = 0; n < N_KINDS; n++) {
        int kind = (int)(((unsigned)n + s->own) % N_KINDS);
        struct op *op = &place->ops[kind];

        if (finish_op(s, op, kind))
            return 1;
        WORLD_CHECK(s->me, !coll_request_destroy(op->request));
        free(op->in);
        free(op->out);
    }
    WORLD_CHECK(s->me, !coll_comm_destroy(place->comm));
    place->comm = NULL;
    return 0;
}

/* One that is there ends; or another one is made, of one on which nothing may run
 * then, while what runs on the others goes on. */
static int turn_over(struct scene *s, struct place *from)
{
    struct place *place =
        &s->places[1 + next_random(&s->script) % (N_COMMS - 1)];
    int is_dup = (int)(next_random(&s->script) % 2);

    if (place == from)
        return 0;
    if (place->comm)
        return leave(s, place);
    for (int kind = 0; kind < N_KINDS; kind++)
        if (finish_op(s, &from->ops[kind], kind))
            return 1;
    WORLD_CHECK(s->me, is_dup ? !coll_comm_dup(from->comm, &place->comm)
                              : !coll_comm_split(from->comm, 0, s->me->rank,
                                                 &place->comm));
    return settle(s, place);
}

/* ---- what comes between ---------------------------------------------------- */

static int sum_in_groups(struct scene *s, struct place *place)
{
    struct coll_comm *first = s->places[0].comm;
    int one[3] = {1, 2, 3}, sums[3] = {0};

    WORLD_CHECK(s->me, !coll_group_start());
    WORLD_CHECK(s->me, !coll_allreduce(&one[0], &sums[0], 1, COLL_I32, COLL_SUM,
                                       place->comm, NULL));
    WORLD_CHECK(s->me, !coll_group_start());
    WORLD_CHECK(s->me, !coll_allreduce(&one[1], &sums[1], 1, COLL_I32, COLL_SUM,
                                       first, NULL));
    WORLD_CHECK(s->me, !coll_group_end());
    WORLD_CHECK(s->me, !coll_allreduce(&one[2], &sums[2], 1, COLL_I32, COLL_MAX,
                                       place->comm, NULL));
    WORLD_CHECK(s->me, !coll_group_end());
    WORLD_CHECK(s->me, sums[0] == s->me->size && sums[1] == 2 * s->me->size &&
                           sums[2] == 3);
    return 0;
}

/* A child may do nothing with what runs, which goes on. */
static int fork_once(struct scene *s)
{
    const struct op *op = &s->places[0].ops[2];
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(coll_test(op->request) != COLL_ERR_INVALID);
    WORLD_CHECK(s->me, pid > 0 && waitpid(pid, &status, 0) == pid);
    WORLD_CHECK(s->me, status == 0);
    return 0;
}

static int step(struct scene *s)
{
    struct place *place = &s->places[next_random(&s->script) % N_COMMS];
    unsigned what = next_random(&s->script) % 16;

    if (!place->comm)
        place = &s->places[0];
    if (next_random(&s->own) % 40 == 0 && fork_once(s))
        return 1;
    if (what < 9)
        return start_some(s, place) || finish_some(s);
    if (what < 13)
        return turn_over(s, place);
    return what < 15 ? sum_in_groups(s, place)
                     : world_sum(place->comm, 3) != COLL_OK;
}

static int odd_orders(struct world_rank *me)
{
    unsigned seed = *(unsigned *)me->arg + 1;
    struct scene s = {
        .me = me, .script = seed, .own = seed * 100 + (unsigned)me->rank};

    s.places[0].comm = world_join(me);
    if (settle(&s, &s.places[0]))
        return 1;
    for (int n = 0; n < N_STEPS; n++)
        if (step(&s))
            return 1;
    for (int c = N_COMMS - 1; c >= 0; c--)
        if (s.places[c].comm && leave(&s, &s.places[c]))
            return 1;
    return 0;
}

/* _i: the transport, the progress thread, the number of ranks, the seed. */
START_TEST(all_end_well)
{
    static const int sizes[] = {2, 3, 5};
    unsigned seed = (unsigned)_i;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    setenv("COLL_PROGRESS", _i / 2 % 2 ? "thread" : "off", 1);
    ck_assert_int_eq(world_fork(sizes[_i / 4 % 3], odd_orders, &seed, DEADLINE),
                     0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("odd_orders");
    TCase *c = tcase_create("odd_orders");

    patient_timeout(60);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, all_end_well, 0, getenv("TEST_QUICK") ? 4 : 24);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
