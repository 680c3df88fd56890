/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - what memory a communicator takes: little at first, and never
 * more than its segment.
 *
 * With MEMORY_SHOW=1 rank 0 prints what it measures.
 */
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("skipped: a sanitizer takes memory of its own");
    return 77;
}
#else

#define RANKS 8
#define KIB ((size_t)1 << 10)
#define FIRST_MAX (4096 * KIB)  /* before the first message */
#define LARGE ((size_t)1 << 18) /* elements of a large vector */

/* The segment's parts by default, for 8 ranks. */
#define LINES 32
#define SLOT (4 * KIB)
#define CELL (128 * KIB)
#define CELLS (2 * (RANKS - 1))

/* Bytes of /proc/self/status's line of that name; 0 when it is not there. */
static size_t status_of(const char *name)
{
    FILE *file = fopen("/proc/self/status", "re");
    size_t kib = 0, n = strlen(name);
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, name, n) && line[n] == ':')
            kib = strtoul(line + n + 1, NULL, 10);
    if (file)
        fclose(file);
    return kib * KIB;
}

static size_t resident(void)
{
    return status_of("RssAnon") + status_of("RssShmem");
}

static void show(const struct world_rank *me, const char *what)
{
    if (me->rank == 0 && getenv("MEMORY_SHOW"))
        printf("%-16s anon %6zu KiB, shared %6zu KiB\n", what,
               status_of("RssAnon") / KIB, status_of("RssShmem") / KIB);
}

/* What one rank may have touched: its fifos, both ways, and all cells. */
static size_t segment_max(void)
{
    return 2 * RANKS * (2 * 4 * KIB + LINES * SLOT) + RANKS * CELLS * CELL;
}

static int run_all(struct world_rank *me, struct coll_comm *comm, float *in,
                   float *out)
{
    const size_t n = LARGE, part = LARGE / RANKS;

    WORLD_CHECK(me,
                !coll_allreduce(in, out, n, COLL_F32, COLL_SUM, comm, NULL));
    show(me, "allreduce");
    WORLD_CHECK(me, !coll_broadcast(in, out, n, COLL_F32, 1, comm, NULL));
    show(me, "broadcast");
    WORLD_CHECK(me, !coll_allgather(in, out, part, COLL_F32, comm, NULL));
    show(me, "allgather");
    WORLD_CHECK(me, !coll_reduce_scatter(in, out, part, COLL_F32, COLL_SUM,
                                         comm, NULL));
    show(me, "reduce_scatter");
    WORLD_CHECK(me, !coll_alltoall(in, out, part, COLL_F32, comm, NULL));
    show(me, "alltoall");
    WORLD_CHECK(me,
                !coll_reduce(in, out, n, COLL_F32, COLL_MAX, 0, comm, NULL));
    show(me, "reduce");
    return 0;
}

static int measure(struct world_rank *me)
{
    float *in = calloc(2 * LARGE, sizeof(*in)), *out = in + LARGE;
    struct coll_comm *comm;
    size_t before;

    for (size_t i = 0; i < 2 * LARGE; i++)
        in[i] = 1; /* the pages are there */
    show(me, "start");
    before = resident();
    WORLD_CHECK(me, before > 0);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    show(me, "communicator");
    WORLD_CHECK(me, resident() < before + FIRST_MAX);
    for (int i = 0; i < 10; i++)
        WORLD_CHECK(
            me, !coll_allreduce(in, out, 2, COLL_F32, COLL_SUM, comm, NULL));
    show(me, "small ones");
    WORLD_CHECK(me, resident() < before + FIRST_MAX);
    for (int turn = 0; turn < 3; turn++) {
        WORLD_CHECK(me, !run_all(me, comm, in, out));
        WORLD_CHECK(me, status_of("RssShmem") <= segment_max());
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, status_of("RssShmem") < KIB * KIB); /* all unmapped */
    show(me, "end");
    free(in);
    return 0;
}

/* Messages of one cell, one after the other, need no more than a few. */
static int broadcast_by_cells(struct world_rank *me)
{
    const size_t n = CELL / sizeof(float);
    float *in = calloc(2 * n, sizeof(*in)), *out = in + n;
    struct coll_comm *comm = world_join(me);
    size_t before = 0;

    WORLD_CHECK(me, in && comm);
    for (int k = 0; k < 3 * CELLS; k++) {
        world_meet(me); /* all have read the one before */
        if (k == CELLS - 2) /* a few are used before any is used again */
            before = resident();
        WORLD_CHECK(me, !coll_broadcast(in, out, n, COLL_F32, 0, comm, NULL));
    }
    show(me, "broadcasts");
    WORLD_CHECK(me, before && resident() < before + CELL);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    free(in);
    return 0;
}

START_TEST(few_cells_are_used_again_and_again)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    setenv("COLL_CMA", "off", 1);
    ck_assert_int_eq(world_fork(RANKS, broadcast_by_cells, NULL, 60), 0);
}
END_TEST

/* _i: whether messages are fetched, or go through cells. */
START_TEST(a_communicator_takes_little_memory)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    setenv("COLL_CMA", _i ? "off" : "auto", 1);
    ck_assert_int_eq(world_fork(RANKS, measure, NULL, 60), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *c = tcase_create("memory");

    tcase_set_timeout(c, 90);
    tcase_add_loop_test(c, a_communicator_takes_little_memory, 0, 2);
    tcase_add_test(c, few_cells_are_used_again_and_again);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
#endif
