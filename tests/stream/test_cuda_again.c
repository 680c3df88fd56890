/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_again.c - calls of a shape that was there before, over the fake CUDA driver:
 * no algorithm is chosen for them, and shapes that differ in little are told apart. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT = 128 };

static int n_chosen; /* how often an algorithm was chosen, as the log says */

static void count(enum coll_log_level level, const char *topic,
                  const char *text, void *arg)
{
    (void)level;
    (void)arg;
    n_chosen += !strcmp(topic, "plan") && strstr(text, "predicted");
}

/* Do the device's call; a request, since only it can name an algorithm. */
static int run(const struct device_rank *r, const struct device_call *call)
{
    struct coll_request *request;
    int rc = coll_request_create(&call->device, r->comm, &request);

    if (rc)
        return rc;
    rc = coll_start(request);
    if (!rc)
        rc = coll_wait(request, 30);
    coll_request_destroy(request);
    return rc;
}

/* Do the call and return whether its result is right and `more` algorithms were chosen. */
static int costs(const struct device_rank *r, const struct device_call *given,
                 int more)
{
    struct device_call call = *given;
    int before, is_well;

    if (device_fill(r, &call))
        return 0;
    is_well = !device_do(&call.host, r->comm);
    before = n_chosen;
    is_well = is_well && !run(r, &call);
    is_well = is_well && device_same(&call) && n_chosen == before + more;
    device_free(r, &call);
    return is_well;
}

static const struct device_call first = {
    .host = {.collective = COLL_ALLREDUCE, .type = COLL_I32, .op = COLL_SUM},
    .count = 100};

/* The first call and what differs from it in one thing; each is new once. */
static int differ(struct world_rank *me)
{
    struct device_call calls[] = {first, first, first, first, first,
                                  first, first, first, first, first};
    struct device_rank r;
    int n = 0;

    WORLD_CHECK(me, !device_join(&r, me));
    calls[++n].count = 101;
    calls[++n].host.op = COLL_MAX;
    calls[++n].host.type = COLL_U32;
    calls[++n].in_place = 1;
    calls[++n].host.algo = "ring";
    calls[++n].host.algo = "recursive_doubling";
    calls[++n].host.collective = COLL_REDUCE;
    calls[++n].host.collective = COLL_REDUCE;
    calls[n].host.root = 1;
    calls[++n].host.collective = COLL_ALLGATHERV;
    for (int again = 0; again < 3; again++)
        for (int i = 0; i <= n; i++)
            WORLD_CHECK(me, costs(&r, &calls[i], !again));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(an_algorithm_is_chosen_once_for_a_shape)
{
    ck_assert_int_eq(device_fork(_i, differ, NULL), 0);
}
END_TEST

static int scale(const struct device_rank *r, float by, int more)
{
    struct device_call call = first;
    int is_well;

    call.host.type = COLL_F32;
    if (coll_op_create_premul(&by, COLL_F32, &call.host.op))
        return 0;
    is_well = costs(r, &call, more);
    return !coll_op_destroy(call.host.op) && is_well;
}

static int scale_call(const struct device_rank *r, double prescale,
                      double postscale, int more)
{
    struct device_call call = first;

    call.host.type = COLL_F32;
    call.host.prescale = prescale;
    call.host.postscale = postscale;
    return costs(r, &call, more);
}

static int scale_all(struct world_rank *me)
{
    struct device_rank r;

    WORLD_CHECK(me, !device_join(&r, me));
    WORLD_CHECK(me, scale(&r, 2, 1) && scale(&r, 3, 1));
    WORLD_CHECK(me, scale(&r, 2, 0) && scale(&r, 3, 0));
    for (int more = 1; more >= 0; more--)
        WORLD_CHECK(me, scale_call(&r, 0, 2, more) &&
                            scale_call(&r, 0, 3, more) &&
                            scale_call(&r, 3, 2, more));
    return device_leave(&r);
}

START_TEST(scalars_are_a_part_of_the_shape)
{
    ck_assert_int_eq(device_fork(2, scale_all, NULL), 0);
}
END_TEST

/* One shape more than are kept: the one used longest ago goes. */
static int fill_up(struct world_rank *me)
{
    struct device_call call = first;
    struct device_rank r;

    WORLD_CHECK(me, !device_join(&r, me));
    for (call.count = 1; call.count <= MOST_KEPT; call.count++)
        WORLD_CHECK(me, costs(&r, &call, 1));
    call.count = 1;
    WORLD_CHECK(me, costs(&r, &call, 0));
    call.count = MOST_KEPT + 1;
    WORLD_CHECK(me, costs(&r, &call, 1));
    call.count = 1;
    WORLD_CHECK(me, costs(&r, &call, 0));
    call.count = 2;
    WORLD_CHECK(me, costs(&r, &call, 1));
    return device_leave(&r);
}

START_TEST(the_shape_used_longest_ago_is_forgotten)
{
    ck_assert_int_eq(device_fork(2, fill_up, NULL), 0);
}
END_TEST

/* Each time it is wrong again, and leaves nothing behind. */
static int name_wrong(struct world_rank *me)
{
    struct device_call call = first;
    struct device_rank r;

    WORLD_CHECK(me, !device_join(&r, me));
    WORLD_CHECK(me, costs(&r, &call, 1));
    call.host.algo = "nonsense";
    for (int i = 0; i < 2; i++) {
        struct device_call wrong = call;

        WORLD_CHECK(me, !device_fill(&r, &wrong));
        WORLD_CHECK(me, run(&r, &wrong) == COLL_ERR_INVALID);
        device_free(&r, &wrong);
    }
    call.host.algo = NULL;
    WORLD_CHECK(me, costs(&r, &call, 0));
    return device_leave(&r);
}

START_TEST(an_algorithm_that_is_none_is_refused_each_time)
{
    ck_assert_int_eq(device_fork(2, name_wrong, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_again");
    TCase *tc = suite_case(suite, "cuda_again", 120);

    setenv("COLL_LOG", "error,plan:debug", 1);
    coll_set_log_handler(count, NULL);
    tcase_add_loop_test(tc, an_algorithm_is_chosen_once_for_a_shape, 2, 5);
    tcase_add_test(tc, scalars_are_a_part_of_the_shape);
    tcase_add_test(tc, the_shape_used_longest_ago_is_forgotten);
    tcase_add_test(tc, an_algorithm_that_is_none_is_refused_each_time);
    return suite_run(suite);
}
