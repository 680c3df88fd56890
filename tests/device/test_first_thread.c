/* SPDX-License-Identifier: BSD-3-Clause */
/* test_first_thread.c - processes whose first thread has ended, as main() may by
 * pthread_exit(): their number is that thread's, and others go on. */
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/device/process.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 60
#define MIB ((size_t)1 << 20)

/* Operations on what is read by the process's number, each way. */
static int read_each_way(struct world_rank *me, struct coll_comm *comm)
{
    const size_t count = MIB;
    char *in = malloc(2 * count), *out = calloc(2, count);
    void *region;

    WORLD_CHECK(me, in && out && !coll_mem_alloc(&region, count));
    memset(in, 1 + me->rank, 2 * count);
    memset(region, 1 + me->rank, count);
    WORLD_CHECK(me, !coll_alltoall(in, out, count, COLL_I8, comm, NULL));
    WORLD_CHECK(me,
                !coll_broadcast(region, region, count, COLL_I8, 1, comm, NULL));
    for (size_t i = 0; i < count; i++)
        WORLD_CHECK(me, out[i] == 1 && out[count + i] == 2 &&
                            ((char *)region)[i] == 2);
    free(in);
    free(out);
    return coll_mem_free(region);
}

/* The first thread is gone, which has the process's number. */
static int has_first_thread(void)
{
    FILE *file = fopen("/proc/self/stat", "re");
    char state = 0;

    if (file && fscanf(file, "%*d %*s %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state != 'Z';
}

static struct coll_comm *made_by_first;

static int go_on(struct world_rank *me)
{
    struct coll_comm *dup;

    while (has_first_thread())
        usleep(1000);
    WORLD_CHECK(me, !coll__is_ending(getpid()));
    world_meet(me);
    WORLD_CHECK(me, !read_each_way(me, made_by_first));
    WORLD_CHECK(me, !coll_comm_dup(made_by_first, &dup));
    WORLD_CHECK(me, !read_each_way(me, dup));
    WORLD_CHECK(me, coll_comm_destroy(dup) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(made_by_first) == COLL_OK);
    return 0;
}

static void *go_on_and_exit(void *me) { _exit(go_on(me)); }

static int leave_to_another(struct world_rank *me)
{
    pthread_t thread;

    made_by_first = world_join(me);
    WORLD_CHECK(me, made_by_first);
    WORLD_CHECK(me, !pthread_create(&thread, NULL, go_on_and_exit, me));
    pthread_exit(NULL);
}

START_TEST(a_process_may_go_on_without_its_first_thread)
{
    ck_assert_int_eq(world_fork(2, leave_to_another, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("first_thread");
    TCase *c = tcase_create("first_thread");

    setenv("COLL_TRANSPORTS", "self,shm", 1);
    tcase_set_timeout(c, DEADLINE + 20);
    tcase_add_test(c, a_process_may_go_on_without_its_first_thread);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
