/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tcp_call.c - a rank that computes while its connection is made.  Two ranks are in
 * this process, each opened by a thread of its own.
 */
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "transports/tcp.h"

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define RANKS 2
#define TIMEOUT 2 /* s, for a call */
#define DEADLINE 60

/* What the ranks tell each other. */
static unsigned char told[RANKS * sizeof(struct tcp_card)];
static pthread_barrier_t meeting;

struct end {
    int rank;
    struct coll__tp *tp;
};

static int gather(void *arg, const void *in, size_t len, void *out)
{
    const struct end *end = arg;

    ck_assert_uint_le(len, sizeof(told) / RANKS);
    memcpy(told + (size_t)end->rank * len, in, len);
    pthread_barrier_wait(&meeting);
    memcpy(out, told, RANKS * len);
    pthread_barrier_wait(&meeting);
    return COLL_OK;
}

static void *open_end(void *arg)
{
    static const unsigned char secret[32] = {1};
    struct coll__peer peers[RANKS] = {{.host = 0}};
    struct end *end = arg;
    struct coll__tp_env env = {.rank = end->rank,
                               .size = RANKS,
                               .peers = peers,
                               .allgather = gather,
                               .arg = end,
                               .timeout = patient(TIMEOUT),
                               .secret = secret};

    ck_assert_int_eq(coll__transport_find("tcp")->open(&env, &end->tp),
                     COLL_OK);
    return NULL;
}

/* The time for a call passes while its rank looks at nothing. */
START_TEST(a_call_has_its_time_while_its_rank_looks)
{
    struct end ends[RANKS] = {{.rank = 0}, {.rank = 1}};
    struct coll__xfer sent = {.buf = (char[1]){1}, .len = 1};
    struct coll__xfer got = {.buf = (char[1]){0}, .len = 1};
    struct coll__tp *caller, *called;
    double end = coll__now() + patient(DEADLINE);
    pthread_t threads[RANKS];

    ck_assert(!pthread_barrier_init(&meeting, NULL, RANKS));
    for (int r = 0; r < RANKS; r++)
        ck_assert(!pthread_create(&threads[r], NULL, open_end, &ends[r]));
    for (int r = 0; r < RANKS; r++)
        ck_assert(!pthread_join(threads[r], NULL));
    caller = ends[_i].tp;
    called = ends[!_i].tp;
    sent.peer = !_i;
    got.peer = _i;
    caller->ops->send(caller, &sent);
    ck_assert_int_ge(caller->ops->poll(caller), 0);
    sleep((unsigned)patient(TIMEOUT) + 1);
    ck_assert_int_ge(caller->ops->poll(caller), 0);
    called->ops->recv(called, &got);
    while (
        (sent.status == COLL_IN_PROGRESS || got.status == COLL_IN_PROGRESS) &&
        coll__now() < end) {
        ck_assert_int_ge(caller->ops->poll(caller), 0);
        ck_assert_int_ge(called->ops->poll(called), 0);
    }
    ck_assert_int_eq(sent.status, COLL_OK);
    ck_assert_int_eq(got.status, COLL_OK);
    ck_assert_int_eq(*(char *)got.buf, 1);
    for (int r = 0; r < RANKS; r++)
        ends[r].tp->ops->close(ends[r].tp, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp_call");
    TCase *tcase = tcase_create("tcp_call");

    tcase_set_timeout(tcase, DEADLINE + 30);
    tcase_add_loop_test(tcase, a_call_has_its_time_while_its_rank_looks, 0,
                        RANKS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
