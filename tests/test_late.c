/* SPDX-License-Identifier: BSD-3-Clause */
/* test_late.c - local steps that end later than they start: every algorithm on a
 * device whose queue is late gives the bytes that it gives on the host. */
#include "lib/api/comm.h"
#include "lib/util/util.h"
#include "tests/late_device.h"
#include "tests/patience.h"
#include "tests/world.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 60
#define COUNT 3001 /* elements a rank */
#define CHUNK 2048 /* bytes, so that there is a pipeline */

extern const struct coll__device coll__device_host;

struct shape {
    enum coll_collective collective;
    enum coll_op op;
    int root;
};

static const struct shape shapes[] = {
    {COLL_ALLREDUCE, COLL_SUM, 0},      {COLL_ALLREDUCE, COLL_AVG, 0},
    {COLL_BROADCAST, COLL_SUM, 1},      {COLL_REDUCE, COLL_MAX, 1},
    {COLL_REDUCE, COLL_AVG, 0},         {COLL_ALLGATHER, COLL_SUM, 0},
    {COLL_REDUCE_SCATTER, COLL_SUM, 0}, {COLL_ALLTOALL, COLL_SUM, 0},
    {COLL_GATHER, COLL_SUM, 1},         {COLL_SCATTER, COLL_SUM, 1},
};

struct stage {
    struct coll_comm *comm;
    float *in, *out, *expected; /* [COUNT * ranks] */
    size_t len;
    uint64_t seq;
};

static int set_up(struct world_rank *me, struct stage *s)
{
    s->comm = world_join(me);
    s->len = COUNT * (size_t)me->size * sizeof(float);
    s->in = malloc(s->len);
    s->out = malloc(s->len);
    s->expected = malloc(s->len);
    s->seq = 1000000; /* far from the communicator's own */
    WORLD_CHECK(me, s->comm && s->in && s->out && s->expected);
    for (size_t i = 0; i < s->len / sizeof(float); i++)
        s->in[i] = (float)((i * 7 + (size_t)me->rank * 13) % 97);
    return 0;
}

static int tear_down(struct world_rank *me, struct stage *s, int rc)
{
    WORLD_CHECK(me, coll_comm_destroy(s->comm) == rc);
    free(s->in);
    free(s->out);
    free(s->expected);
    return 0;
}

/* Make a program of an algorithm on a device; 1 when it refuses. */
static int make(struct stage *s, const struct coll__algo *algo,
                const struct shape *shape, enum coll_op op,
                const struct coll__device *device, struct coll__prog **prog)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = shape->collective,
                             .type = COLL_F32,
                             .op = op,
                             .root = shape->root,
                             .in = s->in,
                             .out = s->out,
                             .count = COUNT};
    struct coll__binding to;
    struct coll__problem pb;
    struct coll__plan plan;
    struct coll__op what;

    ck_assert_int_eq(coll__args_check(&args, s->comm, &pb), COLL_OK);
    if (coll__algo_refuses(algo, &pb))
        return 1;
    ck_assert_int_eq(coll__plan_build(algo, &pb, CHUNK, &plan), COLL_OK);
    ck_assert_int_eq(
        coll__op_get(coll__reduces(pb.collective) ? op : pb.op, &what),
        COLL_OK);
    to = (struct coll__binding){
        .op = &what, .routes = &s->comm->routes, .device = device};
    ck_assert_int_eq(coll__prog_create(&pb, &plan, &to, prog), COLL_OK);
    ck_assert(device == &coll__device_host || !coll__prog_is_listed(*prog));
    return 0;
}

/* Run it to its end, or to a status; all of its works have ended then. */
/* A round of one program alone. */
static int go_round(const struct stage *s, struct coll__prog *prog)
{
    int moved = 0, rc = coll__prog_look(prog, &moved);

    if (rc != COLL_IN_PROGRESS)
        return rc;
    rc = coll__routes_poll(&s->comm->routes);
    return rc < 0 ? rc : coll__prog_advance(prog, &moved);
}

static int run(struct stage *s, struct coll__prog *prog,
               const struct shape *shape)
{
    struct coll__head head = {.seq = ++s->seq,
                              .collective = (uint8_t)shape->collective};
    double end = coll__now() + patient(DEADLINE / 2);
    int rc;

    memset(s->out, 0xa5, s->len);
    coll__prog_start(prog, &head, s->in, s->out, NULL);
    while ((rc = go_round(s, prog)) == COLL_IN_PROGRESS &&
           coll__now() < end)
        ;
    return rc;
}

static int compare(struct world_rank *me, struct stage *s,
                   const struct coll__algo *algo, const struct shape *shape,
                   enum coll_op op, int *most)
{
    struct coll__prog *prog;

    if (make(s, algo, shape, op, &coll__device_host, &prog))
        return 0;
    WORLD_CHECK(me, !run(s, prog, shape));
    coll__prog_destroy(prog);
    memcpy(s->expected, s->out, s->len);
    make(s, algo, shape, op, &late_device, &prog);
    for (int i = 0; i < 3; i++) { /* again and again */
        late_begin((unsigned)(s->seq + (uint64_t)me->rank), -1);
        WORLD_CHECK(me, !run(s, prog, shape));
        WORLD_CHECK(me, !late_n_waiting());
        *most = max_int(*most, late_most());
        if (memcmp(s->expected, s->out, s->len)) {
            fprintf(stderr, "rank %d of %d: %s by %s differs\n", me->rank,
                    me->size, coll_collective_name(shape->collective),
                    algo->name);
            return 1;
        }
    }
    coll__prog_destroy(prog);
    return 0;
}

static int all_algorithms(struct world_rank *me)
{
    struct stage s;
    int most = 0;

    WORLD_CHECK(me, !set_up(me, &s));
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        for (int a = 0; coll__algos[a]; a++)
            if (coll__algos[a]->serves & (1u << shapes[i].collective))
                WORLD_CHECK(me, !compare(me, &s, coll__algos[a], &shapes[i],
                                         shapes[i].op, &most));
    WORLD_CHECK(me, most > 1); /* several at once were under way */
    return tear_down(me, &s, COLL_OK);
}

START_TEST(late_steps_give_the_same_bytes)
{
    int size = 2 + _i / 2 * 3;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(size, all_algorithms, NULL, DEADLINE), 0);
}
END_TEST

/* What is multiplied first: nothing is sent before. */
static int premul(struct world_rank *me)
{
    static const struct shape sum = {COLL_ALLREDUCE, COLL_SUM, 0};
    float scalar = (float)(me->rank + 1);
    int most = 0;
    enum coll_op op;
    struct stage s;

    WORLD_CHECK(me, !set_up(me, &s));
    WORLD_CHECK(me, !coll_op_create_premul(&scalar, COLL_F32, &op));
    for (int a = 0; coll__algos[a]; a++)
        if (coll__algos[a]->serves & (1u << COLL_ALLREDUCE))
            WORLD_CHECK(me, !compare(me, &s, coll__algos[a], &sum, op, &most));
    WORLD_CHECK(me, !coll_op_destroy(op));
    return tear_down(me, &s, COLL_OK);
}

START_TEST(what_is_scaled_late_is_sent_later)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, premul, NULL, DEADLINE), 0);
}
END_TEST

/* ---- faults ---------------------------------------------------------------------- */

/* Begins with a copy of what is the rank's own. */
static const struct shape gather = {COLL_ALLGATHER, COLL_SUM, 0};

/* The device of rank 1 fails: its run ends with that, and no transfer is to
 * blame. */
static int fail_late(struct world_rank *me)
{
    const struct coll__algo *ring = coll__algo_find(COLL_ALLGATHER, "ring");
    struct coll__prog *prog;
    struct stage s;
    int rc;

    WORLD_CHECK(me, !set_up(me, &s));
    WORLD_CHECK(me, !make(&s, ring, &gather, COLL_SUM, &late_device, &prog));
    if (me->rank == 1) {
        late_begin(1, 0);
        rc = run(&s, prog, &gather);
        EXPECT(me, rc, COLL_ERR_SYSTEM, "the late device has failed");
        WORLD_CHECK(me, !coll__prog_fault(prog));
        coll__comm_fail(s.comm, rc, "%s", coll_last_error());
    }
    WORLD_CHECK(me,
                world_await_failure(s.comm, DEADLINE / 2) == COLL_ERR_SYSTEM);
    coll__prog_abandon(prog); /* ends, though the device is as it is */
    coll__prog_destroy(prog);
    return tear_down(me, &s, COLL_ERR_SYSTEM);
}

START_TEST(a_device_that_fails_ends_the_run)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, fail_late, NULL, DEADLINE), 0);
}
END_TEST

/* A run is given up: nothing is written behind its back. */
static int give_up(struct world_rank *me)
{
    const struct coll__algo *ring = coll__algo_find(COLL_ALLGATHER, "ring");
    struct coll__head head = {.seq = 7, .collective = COLL_ALLGATHER};
    struct coll__prog *prog;
    struct stage s;
    int moved = 0;

    WORLD_CHECK(me, !set_up(me, &s));
    WORLD_CHECK(me, !make(&s, ring, &gather, COLL_SUM, &late_device, &prog));
    late_begin(5, -1);
    coll__prog_start(prog, &head, s.in, s.out, NULL);
    WORLD_CHECK(me, coll__prog_advance(prog, &moved) == COLL_IN_PROGRESS);
    WORLD_CHECK(me, late_n_waiting());
    coll__prog_abandon(prog);
    WORLD_CHECK(me, !late_n_waiting());
    coll__prog_destroy(prog);
    world_meet(me); /* who still joins would fail to */
    coll_comm_abort(s.comm, "it is given up");
    return tear_down(me, &s, COLL_ERR_ABORTED);
}

START_TEST(what_is_given_up_writes_no_more)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, give_up, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("late");
    TCase *c = tcase_create("late");
    SRunner *runner = srunner_create(suite);
    int failed;

    patient_timeout(DEADLINE / 2);
    tcase_set_timeout(c, DEADLINE + 30);
    tcase_add_loop_test(c, late_steps_give_the_same_bytes, 0, 4);
    tcase_add_loop_test(c, what_is_scaled_late_is_sent_later, 0, 2);
    tcase_add_loop_test(c, a_device_that_fails_ends_the_run, 0, 2);
    tcase_add_loop_test(c, what_is_given_up_writes_no_more, 0, 2);
    suite_add_tcase(suite, c);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
