/* SPDX-License-Identifier: BSD-3-Clause */
/* test_region.c - memory of coll_mem_alloc(): what it is, that peers read it in
 * place and let go of it, and what goes wrong with it.
 */
#include "tests/support/patience.h"
#include "tests/support/work.h"
#include "tests/support/suite.h"
#include "lib/device/region.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"
#include "lib/type/signature.h"
#include "transports/cma.h"

#include <check.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define NOBODY 65534

/* Areas that this process has mapped, its own and others'. */
static int n_mapped(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    int n = 0;

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        n += strstr(line, "memfd:coll-mem") != NULL;
    fclose(file);
    return n;
}

static int n_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- alone ----------------------------------------------------------------- */

START_TEST(memory_is_zeroed_aligned_and_given_back)
{
    static const size_t lens[] = {0, 1, 4096, 4097, 3 * MIB + 5};
    int files = n_files();
    size_t n_not_zero = 0;
    unsigned char *at[ARRAY_LEN(lens)];
    void *ptr;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        ck_assert_int_eq(coll_mem_alloc(&ptr, lens[i]), COLL_OK);
        at[i] = ptr;
        ck_assert_uint_eq((uintptr_t)ptr % 4096, 0);
        for (size_t k = 0; k < lens[i]; k++)
            n_not_zero += at[i][k] != 0;
        memset(ptr, 0xff, lens[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_ptr_ne(at[k], at[i]);
    }
    ck_assert_uint_eq(n_not_zero, 0);
    ck_assert_int_eq(n_mapped(), ARRAY_LEN(lens));
    for (size_t i = 0; i < ARRAY_LEN(lens); i++)
        ck_assert_int_eq(coll_mem_free(at[i]), COLL_OK);
    ck_assert_int_eq(coll_mem_free(NULL), COLL_OK);
    ck_assert_int_eq(n_mapped(), 0);
    ck_assert_int_eq(n_files(), files);
}
END_TEST

static void ck_fails(int rc, int code, const char *words)
{
    ck_assert_int_eq(rc, code);
    ck_assert_msg(strstr(coll_last_error(), words), "%s", coll_last_error());
}

START_TEST(what_is_wrong_is_said)
{
    void *ptr, *untouched = &ptr;
    char other[8];

    ck_fails(coll_mem_alloc(NULL, 1), COLL_ERR_INVALID, "ptr is NULL");
    ck_fails(coll_mem_alloc(&untouched, SIZE_MAX), COLL_ERR_NOMEM, "ulimit -v");
    ck_fails(coll_mem_alloc(&untouched, (size_t)1 << 60), COLL_ERR_NOMEM,
             "ulimit -v");
    ck_assert_ptr_eq(untouched, &ptr);
    ck_fails(coll_mem_free(other), COLL_ERR_INVALID, "not the start");
    ck_assert_int_eq(coll_mem_alloc(&ptr, 100), COLL_OK);
    ck_fails(coll_mem_free((char *)ptr + 1), COLL_ERR_INVALID, "not the start");
    ck_fails(coll_mem_free(other), COLL_ERR_INVALID, "not the start");
    ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
    ck_fails(coll_mem_free(ptr), COLL_ERR_INVALID, "not the start");
    if (!COLL_HAVE_CUDA)
        ck_fails(coll_mem_alloc_device(&untouched, 1, 0), COLL_ERR_UNSUPPORTED,
                 "built without CUDA");
}
END_TEST

START_TEST(a_limit_is_named)
{
    struct rlimit few = {.rlim_cur = 3}, small = {64 * KIB, 64 * KIB}, was;
    void *ptr;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    few.rlim_max = was.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_fails(coll_mem_alloc(&ptr, MIB), COLL_ERR_SYSTEM, "ulimit -f");
    ck_assert_int_eq(n_mapped(), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_fails(coll_mem_alloc(&ptr, 1), COLL_ERR_SYSTEM, "ulimit -n");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0); /* a sanitizer's end */
}
END_TEST

/* ---- finding --------------------------------------------------------------- */

#define MANY 100 /* more than the first tables hold */

/* 1, 0, or -1 for a place that is not the right one. */
static int is_found(const unsigned char *ptr, size_t off, size_t len)
{
    struct coll__region_place place = {.fd = -1};

    if (!coll__region_find(ptr + off, len, &place))
        return 0;
    return place.off == REGION_HEAD + off && fcntl(place.fd, F_GETFD) >= 0 ? 1
                                                                           : -1;
}

/* Is all of the region found, and nothing around it? */
static int is_right(const unsigned char *ptr)
{
    return is_found(ptr, 0, 1) == 1 && is_found(ptr, 100, 8092) == 1 &&
           is_found(ptr, 100, 8093) == 0 && /* the library's page: */
           is_found(ptr, (size_t)-1, 1) == 0 &&
           is_found((unsigned char *)&ptr, 0, 1) == 0;
}

/* Its own regions are found, however those of others come and go; returns arg
 * when they are.  (Check is not for threads.) */
static void *come_and_go(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    void *regions[MANY] = {NULL};
    int n_wrong = 0;

    for (int turn = 0; turn < 600; turn++) {
        size_t i = (size_t)rand_r(&seed) % MANY;

        if (!regions[i]) {
            n_wrong += coll_mem_alloc(&regions[i], 8192) != COLL_OK;
            continue;
        }
        n_wrong += !is_right(regions[i]);
        if (turn % 2) {
            n_wrong += coll_mem_free(regions[i]) != COLL_OK;
            regions[i] = NULL;
        }
    }
    for (int i = 0; i < MANY; i++)
        n_wrong += coll_mem_free(regions[i]) != COLL_OK;
    return n_wrong ? NULL : arg;
}

START_TEST(a_span_is_found_while_others_come_and_go)
{
    unsigned seeds[] = {1, 2, 3, 4};
    pthread_t threads[ARRAY_LEN(seeds)];
    void *all_well;

    for (size_t t = 0; t < ARRAY_LEN(seeds); t++)
        ck_assert_int_eq(
            pthread_create(&threads[t], NULL, come_and_go, &seeds[t]), 0);
    for (size_t t = 0; t < ARRAY_LEN(seeds); t++) {
        pthread_join(threads[t], &all_well);
        ck_assert_ptr_nonnull(all_well);
    }
    ck_assert_int_eq(n_mapped(), 0);
}
END_TEST

START_TEST(a_child_takes_nothing_away)
{
    unsigned char *ptr;
    void *region;
    int status;
    pid_t pid;

    ck_assert_int_eq(coll_mem_alloc(&region, MIB), COLL_OK);
    ptr = region;
    memset(ptr, 1, MIB);
    pid = fork();
    if (pid == 0) {
        ptr[1] = 7;
        _exit(coll_mem_free(ptr) != COLL_OK || n_mapped());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ptr[0], 1);
    ck_assert_int_eq(ptr[1], 7);
    ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
}
END_TEST

/* ---- results --------------------------------------------------------------- */

static int do_one(struct world_rank *me, struct coll_comm *comm,
                  const struct oracle_op *op, int is_in_place)
{
    static const struct oracle_handles none;
    struct work w;

    work_init(&w, op, me->rank, &none, is_in_place);
    WORLD_CHECK(me, work_call(&w, comm) == COLL_OK);
    if (work_check(&w, me))
        return 1;
    work_fini(&w);
    return 0;
}

/* Every collective at lengths around what is read in place, what a cell holds,
 * and where results are streamed. */
static int every_length(struct world_rank *me)
{
    static const size_t counts[] = {4095, 4097, 4096, 32769, 32768, 262145};
    size_t n = ARRAY_LEN(counts) - (getenv("TEST_QUICK") ? 3 : 0);
    int first = *(int *)me->arg;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < COLL__N_OF_ALL; c++) {
            struct oracle_op op = {.collective = coll__of_all(c),
                                   .type = COLL_I32,
                                   .op = COLL_SUM,
                                   .root = (int)i % me->size,
                                   .size = me->size,
                                   .count = counts[i],
                                   .seed = (unsigned)(i * 100) + (unsigned)c};

            if (do_one(me, comm, &op, (first + (int)i + c) % 2))
                return 1;
        }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* _i: the ranks, and what lies in regions. */
START_TEST(every_collective_is_right_at_every_length)
{
    static const int sizes[] = {2, 3, 5};
    int size = sizes[_i / 3];

    coll__limit_assume(LIMIT_STREAM_MIN, 1 << 20);
    work_in_regions = 1 + _i % 3;
    ck_assert_int_eq(world_fork(size, every_length, &_i, DEADLINE), 0);
    if (size == 3)
        ck_assert_int_eq(world_threads(size, every_length, &_i, DEADLINE), 0);
}
END_TEST

/* ---- in place, and let go ---------------------------------------------------- */

/* Rank 0 gives from a region that is new each time, often at the same address. */
static int renew(struct world_rank *me)
{
    const size_t count = 70000;
    struct coll_comm *comm = world_join(me);
    int own = me->rank == 0;
    int *out = malloc(count * sizeof(int));

    WORLD_CHECK(me, comm && out);
    for (int i = 0; i < 40; i++) {
        void *region = NULL;
        int *buf = out;

        if (own) {
            WORLD_CHECK(me, !coll_mem_alloc(&region, count * sizeof(int)));
            buf = region;
            for (size_t k = 0; k < count; k++)
                buf[k] = (int)k + 1000 * i;
        }
        WORLD_CHECK(me,
                    !coll_broadcast(buf, buf, count, COLL_I32, 0, comm, NULL));
        for (size_t k = 0; k < count; k++)
            WORLD_CHECK(me, buf[k] == (int)k + 1000 * i);
        WORLD_CHECK(me, n_mapped() == 1); /* rank 0's, the last */
        WORLD_CHECK(me, !coll_mem_free(region));
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    WORLD_CHECK(me, n_mapped() == 0);
    free(out);
    return 0;
}

START_TEST(what_is_freed_is_let_go_and_never_read_again)
{
    ck_assert_int_eq(world_fork(3, renew, NULL, DEADLINE), 0);
}
END_TEST

/* Two communicators, one region: mapped once, until both are gone. */
static int with_two(struct world_rank *me)
{
    const size_t count = 70000;
    struct coll_comm *first = world_join(me), *second = world_join(me);
    void *region = malloc(count);

    WORLD_CHECK(me, first && second && region);
    if (me->rank == 0) {
        free(region);
        WORLD_CHECK(me, !coll_mem_alloc(&region, count));
        memset(region, 3, count);
    }
    WORLD_CHECK(
        me, !coll_broadcast(region, region, count, COLL_I8, 0, first, NULL));
    WORLD_CHECK(
        me, !coll_broadcast(region, region, count, COLL_I8, 0, second, NULL));
    WORLD_CHECK(me, n_mapped() == 1);
    WORLD_CHECK(me, coll_comm_destroy(first) == COLL_OK);
    WORLD_CHECK(me, n_mapped() == 1);
    WORLD_CHECK(me, coll_comm_destroy(second) == COLL_OK);
    WORLD_CHECK(me, n_mapped() == (me->rank == 0));
    WORLD_CHECK(me, ((char *)region)[count - 1] == 3);
    if (me->rank == 0)
        WORLD_CHECK(me, !coll_mem_free(region));
    else
        free(region);
    return 0;
}

START_TEST(communicators_share_what_they_map)
{
    ck_assert_int_eq(world_fork(2, with_two, NULL, DEADLINE), 0);
}
END_TEST

/* ---- out of reach ------------------------------------------------------------ */

/* Ranks of one user, of which rank 1 lets nobody look at its files. */
static int hidden(struct world_rank *me)
{
    const size_t count = 300000;
    struct coll_comm *comm;
    void *region;

    if (!getuid())
        WORLD_CHECK(me,
                    !setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
    prctl(PR_SET_DUMPABLE, me->rank != 1);
    comm = world_join(me);
    WORLD_CHECK(me, comm && !coll_mem_alloc(&region, count));
    memset(region, me->rank, count);
    WORLD_CHECK(me,
                !coll_broadcast(region, region, count, COLL_I8, 1, comm, NULL));
    for (size_t i = 0; i < count; i++)
        WORLD_CHECK(me, ((char *)region)[i] == 1);
    if (me->rank != 1) /* who can still look at his own */
        WORLD_CHECK(me, n_mapped() == 1);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    WORLD_CHECK(me, !coll_mem_free(region));
    return 0;
}

START_TEST(who_cannot_be_opened_is_copied_from)
{
    ck_assert_int_eq(world_fork(2, hidden, NULL, DEADLINE), 0);
}
END_TEST

/* Can the other rank's memory be read?  The tokens were made when it could be, if
 * ever. */
static int reads(const struct world_rank *me,
                 const struct coll__cma_token tokens[2])
{
    return coll__cma_probe(&tokens[!me->rank]) == COLL_OK;
}

/* Rank 1 hides its memory when all know that it can be read. */
static int hide_later(struct world_rank *me)
{
    const size_t count = MIB;
    struct coll__cma_token mine, tokens[2];
    struct coll_comm *comm;
    char *in = calloc(2, count), *out = calloc(2, count);
    int could_read, hidden[2], is_hidden;

    if (!getuid())
        WORLD_CHECK(me,
                    !setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
    prctl(PR_SET_DUMPABLE, 1);
    comm = world_join(me);
    coll__cma_offer(&mine);
    WORLD_CHECK(me, comm && in && out);
    WORLD_CHECK(me,
                !me->oob.allgather(me->oob.arg, &mine, tokens, sizeof(mine)));
    could_read = reads(me, tokens);
    world_meet(me);
    prctl(PR_SET_DUMPABLE, me->rank != 1);
    world_meet(me);
    is_hidden = could_read && !reads(me, tokens);
    WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, &is_hidden, hidden,
                                       sizeof(is_hidden)));
    WORLD_CHECK(me, !hidden[1]); /* rank 0 stays as it was */
    if (hidden[0])
        EXPECT(me, coll_alltoall(in, out, count, COLL_I8, comm, NULL),
               COLL_ERR_SYSTEM, "no longer lets its memory be read");
    else /* it never could be, or who reads has the right to anything */
        WORLD_CHECK(me, !coll_alltoall(in, out, count, COLL_I8, comm, NULL));
    coll_comm_destroy(comm);
    free(in);
    free(out);
    return 0;
}

START_TEST(who_hides_later_is_named)
{
    ck_assert_int_eq(world_fork(2, hide_later, NULL, DEADLINE), 0);
}
END_TEST

/* ---- failures ---------------------------------------------------------------- */

/* Rank 2 dies while rank 0 offers it what lies in a region; rank 0 frees it. */
static int outlive(struct world_rank *me)
{
    const size_t count = 8 * MIB;
    struct coll_comm *comm = world_join(me);
    void *region;
    int rc;

    WORLD_CHECK(me, comm && !coll_mem_alloc(&region, count));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (me->rank == 2) {
        usleep(20000);
        raise(SIGKILL);
    }
    rc = coll_broadcast(region, region, count, COLL_I8, 0, comm, NULL);
    WORLD_CHECK(me, rc == COLL_ERR_PEER || (me->rank && rc == COLL_OK));
    WORLD_CHECK(me, !coll_mem_free(region));
    coll_comm_destroy(comm);
    WORLD_CHECK(me, n_mapped() == 0);
    return 0;
}

START_TEST(a_peer_may_die_before_it_has_read)
{
    setenv("COLL_ALGO", "broadcast:direct", 1); /* rank 0 sends to rank 2 itself */
    ck_assert_int_eq(world_fork(3, outlive, NULL, DEADLINE), 1);
}
END_TEST

/* A process that nobody has waited for yet: it has no files any more, but its
 * number. */
START_TEST(an_region_of_who_has_been_killed_is_not_freed)
{
    struct coll__region_map *map;
    struct coll__region_place place;
    siginfo_t info;
    void *region;
    pid_t pid;

    ck_assert_int_eq(coll_mem_alloc(&region, KIB), COLL_OK);
    ck_assert(coll__region_find(region, KIB, &place));
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid)
        for (;;)
            pause();
    ck_assert_int_eq(coll__region_map(pid, &place, &map), COLL_OK);
    coll__region_unmap(map);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(coll__region_map(pid, &place, &map), COLL_ERR_PEER);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(coll_mem_free(region), COLL_OK);
}
END_TEST

static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    size_t pages = 0;

    if (!file || fscanf(file, "%zu", &pages) != 1)
        abort();
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Rank 1 has no room for another 64 MiB. */
static int no_room(struct world_rank *me)
{
    const size_t count = 64 * MIB;
    struct coll_comm *comm = world_join(me);
    struct rlimit limit;
    void *region;
    int rc;

    WORLD_CHECK(me, comm && !coll_mem_alloc(&region, count));
    limit.rlim_cur = limit.rlim_max = address_space() + 32 * MIB;
    if (me->rank == 1)
        WORLD_CHECK(me, !setrlimit(RLIMIT_AS, &limit));
    rc = coll_broadcast(region, region, count, COLL_I8, 0, comm, NULL);
    if (me->rank == 1)
        EXPECT(me, rc, COLL_ERR_NOMEM, "ulimit -v");
    else
        WORLD_CHECK(me, rc < 0);
    coll_comm_destroy(comm);
    WORLD_CHECK(me, !coll_mem_free(region));
    return 0;
}

START_TEST(no_room_to_map_is_said)
{
    ck_assert_int_eq(world_fork(2, no_room, NULL, DEADLINE), 0);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAPS_TERABYTES 1
#elif defined(__has_feature) /* clang */
#define MAPS_TERABYTES                                                         \
    (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define MAPS_TERABYTES 0
#endif

int main(void)
{
    Suite *suite = suite_create("region");
    TCase *alone = suite_case(suite, "alone", 3 * DEADLINE);
    TCase *results = suite_case(suite, "results", 3 * DEADLINE);
    TCase *peers = suite_case(suite, "peers", 3 * DEADLINE);

    patient_timeout(30);
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    tcase_add_test(alone, memory_is_zeroed_aligned_and_given_back);
    tcase_add_test(alone, what_is_wrong_is_said);
    tcase_add_test(alone, a_limit_is_named);
    tcase_add_test(alone, a_span_is_found_while_others_come_and_go);
    tcase_add_test(alone, a_child_takes_nothing_away);
    tcase_add_test(alone, an_region_of_who_has_been_killed_is_not_freed);
    tcase_add_loop_test(results, every_collective_is_right_at_every_length, 0,
                        getenv("TEST_QUICK") ? 6 : 9);
    tcase_add_test(peers, what_is_freed_is_let_go_and_never_read_again);
    tcase_add_test(peers, communicators_share_what_they_map);
    tcase_add_test(peers, who_cannot_be_opened_is_copied_from);
    tcase_add_test(peers, who_hides_later_is_named);
    tcase_add_test(peers, a_peer_may_die_before_it_has_read);
    if (!MAPS_TERABYTES)
        tcase_add_test(peers, no_room_to_map_is_said);
    return suite_run(suite);
}
