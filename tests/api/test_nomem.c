/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nomem.c - one rank runs out of memory while a communicator is divided:
 * each allocation in turn fails there.  Everybody hears of it, nobody waits, and
 * what was made before goes on or says why not. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 60
#define MOST 400 /* allocations of one call */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
    puts("skipped: the sanitizer has the allocator");
    return 77;
}

#else

extern void *__libc_malloc(size_t len);
extern void *__libc_calloc(size_t n, size_t len);
extern void *__libc_realloc(void *old, size_t len);

/* Of the thread that calls the library: how many allocations succeed yet; -1:
 * all. */
static _Thread_local int n_left = -1;

static int fails(void) { return n_left >= 0 && n_left-- == 0; }

void *malloc(size_t len) { return fails() ? NULL : __libc_malloc(len); }

void *calloc(size_t n, size_t len)
{
    return fails() ? NULL : __libc_calloc(n, len);
}

void *realloc(void *old, size_t len)
{
    return fails() ? NULL : __libc_realloc(old, len);
}

/* Let allocation n of rank 1 fail from now on; -1: none. */
static void arm(const struct world_rank *me, int n)
{
    n_left = me->rank == 1 ? n : -1;
}

static int sums_well(struct world_rank *me, struct coll_comm *comm)
{
    int one = 1, all = 0;

    WORLD_CHECK(me,
                !coll_allreduce(&one, &all, 1, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, all == coll_comm_size(comm));
    return 0;
}

typedef int make_fn(struct world_rank *me, struct coll_comm *from,
                    struct coll_comm **made);

static int dup(struct world_rank *me, struct coll_comm *from,
               struct coll_comm **made)
{
    (void)me;
    return coll_comm_dup(from, made);
}

/* In halves along the tree, or not. */
static int halve(struct world_rank *me, struct coll_comm *from,
                 struct coll_comm **made)
{
    return coll_comm_split(from, me->rank / 2, 0, made);
}

static int split(struct world_rank *me, struct coll_comm *from,
                 struct coll_comm **made)
{
    return coll_comm_split(from, me->rank % 2, -me->rank, made);
}

static make_fn *const makers[] = {dup, halve, split};

/* All ranks have it or say why not; the end of the loop is when allocation n was
 * not needed. */
static int make_once(struct world_rank *me, make_fn *make, int n, int *is_over)
{
    struct coll_comm *comm = NULL, *made = NULL;
    int rc, left;
    char over = 0, all[8];

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    arm(me, n);
    rc = make(me, comm, &made);
    left = n_left;
    n_left = -1;
    WORLD_CHECK(me, (rc == COLL_OK) == (made != NULL));
    WORLD_CHECK(me, rc == COLL_OK || *coll_last_error());
    WORLD_CHECK(me, rc != COLL_ERR_TIMEOUT && rc != COLL_ERR_INTERNAL);
    if (made)
        coll_comm_destroy(made);
    if (!coll_comm_async_error(comm))
        WORLD_CHECK(me, !sums_well(me, comm));
    coll_comm_destroy(comm);
    over = left >= 0;
    WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, &over, all, 1));
    *is_over = all[1];
    WORLD_CHECK(me, !*is_over || rc == COLL_OK);
    return 0;
}

static int make_all(struct world_rank *me)
{
    make_fn *make = makers[*(int *)me->arg];
    int is_over = 0;

    for (int n = 0; n < MOST && !is_over; n++) {
        if (make_once(me, make, n, &is_over)) {
            fprintf(stderr, "rank %d: at allocation %d\n", me->rank, n);
            return 1;
        }
    }
    WORLD_CHECK(me, is_over);
    return 0;
}

START_TEST(a_rank_without_memory_is_told_to_all)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    patient_timeout(5);
    ck_assert_int_eq(world_fork(4, make_all, &_i, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nomem");
    TCase *tc = tcase_create("nomem");

    tcase_set_timeout(tc, DEADLINE + 20);
    tcase_add_loop_test(tc, a_rank_without_memory_is_told_to_all, 0,
                        (int)(sizeof(makers) / sizeof(*makers)));
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}

#endif
