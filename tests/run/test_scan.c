/* SPDX-License-Identifier: BSD-3-Clause */
/* test_scan.c - scans and exscans of processes: each algorithm, type and kind of
 * operation, and which order of combination they have. */
#include "lib/algo/algo.h"
#include "lib/util/util.h"
#include "tests/support/parts.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/work.h"
#include "tests/support/world.h"

#include <stdlib.h>
#include <string.h>

#define DEADLINE patient(60)

static const enum coll_collective prefixes[] = {COLL_SCAN, COLL_EXSCAN};

/* ---- results -------------------------------------------------------------- */

/* Carry out a request of the algorithm; 0: it is right, or is refused as it must be. */
static int try_algorithm(struct world_rank *me, struct coll_comm *comm,
                         const struct coll__algo *algo, struct work *w)
{
    struct coll_args args = work_args(w);
    int is_refused = w->op.own == OWN_ORDERED && !algo->is_canonical;
    struct coll_request *request;
    int rc;

    args.algo = algo->name;
    rc = coll_request_create(&args, comm, &request);
    WORLD_CHECK(me, rc == (is_refused ? COLL_ERR_INVALID : COLL_OK));
    if (rc)
        return 0;
    WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, !coll_wait(request, 0));
    WORLD_CHECK(me, !coll_request_destroy(request));
    return work_check(w, me);
}

/* Try an operation by each algorithm and by the blocking call. */
static int try_op(struct world_rank *me, struct coll_comm *comm,
                  const struct oracle_handles *handles,
                  const struct oracle_op *op)
{
    struct work w;
    int wrong = 0, in_place = (me->rank + (int)op->seed) % 2;

    for (int a = 0; coll__algos[a] && !wrong; a++) {
        if (!(coll__algos[a]->serves & 1u << op->collective))
            continue;
        work_init(&w, op, me->rank, handles, in_place);
        wrong = try_algorithm(me, comm, coll__algos[a], &w);
        work_fini(&w);
    }
    work_init(&w, op, me->rank, handles, !in_place);
    if (!wrong)
        wrong = work_call(&w, comm) || work_check(&w, me);
    work_fini(&w);
    return wrong;
}

static enum coll_op op_for(enum coll_type type, unsigned k)
{
    if (is_pair(type))
        return k % 2 ? COLL_MINLOC : COLL_MAXLOC;
    if (is_complex(type))
        return k % 2 ? COLL_PROD : COLL_SUM;
    return k % 3 ? COLL_SUM : COLL_MAX;
}

static int every_type(struct world_rank *me, struct coll_comm *comm)
{
    static const size_t counts[] = {0, 1, 3, 1000, 100001};
    struct oracle_handles handles;
    unsigned k = 0;

    WORLD_CHECK(me, !oracle_handles_init(&handles, me->rank));
    for (int type = 0; type < COLL_N_TYPES; type++)
        for (int own = 0; own < N_OWNS; own++)
            for (size_t p = 0; p < ARRAY_LEN(prefixes); p++, k++) {
                struct oracle_op op = {.collective = prefixes[p],
                                       .type = (enum coll_type)type,
                                       .op = op_for((enum coll_type)type, k),
                                       .own = (enum oracle_own)own,
                                       .size = me->size,
                                       .count = counts[k % 5],
                                       .seed = k};

                if (oracle_is_exact(&op))
                    WORLD_CHECK(me, !try_op(me, comm, &handles, &op));
            }
    WORLD_CHECK(me, !oracle_handles_fini(&handles));
    return 0;
}

/* _i: the number of ranks. */
START_TEST(every_type_and_operation_is_right)
{
    static const int sizes[] = {1, 2, 3, 5, 9};

    ck_assert_int_eq(world_fork_joined(sizes[_i], every_type, NULL, DEADLINE),
                     0);
}
END_TEST

/* ---- rank 0 of an exscan ---------------------------------------------------- */

static int keep_out(struct world_rank *me, struct coll_comm *comm)
{
    int32_t in[4] = {1, 2, 3, 4}, out[4] = {-1, -1, -1, -1};
    int32_t *first = me->rank ? out : NULL, factor = me->rank;

    WORLD_CHECK(me, !coll_exscan(in, out, 4, COLL_I32, COLL_SUM, comm, NULL));
    for (int i = 0; i < 4; i++)
        WORLD_CHECK(me, out[i] == (factor ? factor * in[i] : -1));
    WORLD_CHECK(me, !coll_exscan(in, first, 4, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, !coll_exscan(in, in, 4, COLL_I32, COLL_SUM, comm, NULL));
    for (int i = 0; i < 4; i++)
        WORLD_CHECK(me, in[i] == (factor ? factor : 1) * (i + 1));
    return 0;
}

START_TEST(an_exscan_leaves_out_on_rank_0_as_it_was)
{
    ck_assert_int_eq(world_fork_joined(1, keep_out, NULL, DEADLINE), 0);
    ck_assert_int_eq(world_fork_joined(4, keep_out, NULL, DEADLINE), 0);
}
END_TEST

/* ---- reproducible ----------------------------------------------------------- */

enum { COUNT = 30011 };

/* A scan of the whole vector has the bits of scans of its parts. */
static int compare_cuts(struct world_rank *me, struct coll_comm *comm,
                        int is_scan)
{
    static float in[COUNT], whole[COUNT], parts[COUNT];
    uint64_t state = (uint64_t)me->rank + 1;
    size_t n;

    for (size_t i = 0; i < COUNT; i++)
        in[i] = (float)oracle_random(&state, 1u << 20) / 1e3f;
    memset(whole, 0, sizeof(whole));
    memset(parts, 0, sizeof(parts));
    WORLD_CHECK(me, !(is_scan ? coll_scan : coll_exscan)(
                        in, whole, COUNT, COLL_F32, COLL_SUM, comm, NULL));
    for (size_t i = 0; i < COUNT; i += n) {
        n = min_size(1 + i * 2, COUNT - i);
        WORLD_CHECK(me,
                    !(is_scan ? coll_scan : coll_exscan)(
                        in + i, parts + i, n, COLL_F32, COLL_SUM, comm, NULL));
    }
    WORLD_CHECK(me, !memcmp(whole, parts, sizeof(whole)));
    return 0;
}

static int cut(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .reproducible = 1};
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    for (int is_scan = 0; is_scan < 2; is_scan++)
        WORLD_CHECK(me, !compare_cuts(me, comm, is_scan));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(reproducible_bits_do_not_depend_on_the_count)
{
    ck_assert_int_eq(world_fork(7, cut, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scan");
    TCase *cases = tcase_create("scan");

    tcase_set_timeout(cases, patient(70));
    tcase_add_loop_test(cases, every_type_and_operation_is_right, 0, 5);
    tcase_add_test(cases, an_exscan_leaves_out_on_rank_0_as_it_was);
    tcase_add_test(cases, reproducible_bits_do_not_depend_on_the_count);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
