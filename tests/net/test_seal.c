/* SPDX-License-Identifier: BSD-3-Clause */
/* test_seal.c - sealed connections: nobody on the way reads a byte or changes one
 * unnoticed, and ranks that disagree whether to seal say so. */
#include "lib/net/auth.h"
#include "lib/util/util.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DEADLINE 60

/* ---- records ------------------------------------------------------------- */

static const unsigned char session[COLL__SECRET_BYTES] = {1, 2, 3};

static void open_both(struct coll__seal *from, struct coll__seal *to)
{
    coll__seal_init(from, session, "connector");
    coll__seal_init(to, session, "connector");
}

START_TEST(records_open_in_their_order)
{
    static const size_t lens[] = {0, 1, 32, 4096, COLL__SEAL_RECORD};
    static unsigned char in[COLL__SEAL_RECORD], out[COLL__SEAL_RECORD],
        record[COLL__SEAL_RECORD + COLL__SEAL_BYTES];
    struct coll__seal from, to;

    open_both(&from, &to);
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        memset(in, (int)i + 1, sizeof(in));
        coll__seal_put(&from, record, in, lens[i]);
        ck_assert(lens[i] < 32 || memcmp(record, in, lens[i]) != 0);
        ck_assert_int_eq(coll__seal_take(&to, out, record, lens[i]), 0);
        ck_assert(!memcmp(in, out, lens[i]));
        ck_assert_uint_eq(coll__sealed_len(lens[i]),
                          lens[i] ? lens[i] + COLL__SEAL_BYTES : 0);
    }
}
END_TEST

/* Where the key changes, and beyond. */
START_TEST(keys_change_and_no_record_is_like_another)
{
    unsigned char in[32] = {7}, out[32], record[48], before[48] = {0};
    struct coll__seal from, to;

    open_both(&from, &to);
    for (unsigned n = 0; n < 2 * COLL__SEAL_PER_KEY + 3; n++) {
        coll__seal_put(&from, record, in, sizeof(in));
        ck_assert(memcmp(record, before, sizeof(record)) != 0);
        memcpy(before, record, sizeof(record));
        ck_assert_int_eq(coll__seal_take(&to, out, record, sizeof(in)), 0);
    }
    ck_assert(!memcmp(in, out, sizeof(in)));
    ck_assert(memcmp(from.key, session, sizeof(session)) != 0);
}
END_TEST

/* _i: which byte of the record is changed, by one bit. */
START_TEST(a_changed_bit_is_noticed)
{
    unsigned char in[32] = {7}, out[32], record[48];
    struct coll__seal from, to;

    open_both(&from, &to);
    coll__seal_put(&from, record, in, sizeof(in));
    record[_i] ^= 0x10;
    ck_assert_int_ne(coll__seal_take(&to, out, record, sizeof(in)), 0);
}
END_TEST

START_TEST(what_is_repeated_or_left_out_is_noticed)
{
    unsigned char in[32] = {7}, out[32], records[3][48];
    struct coll__seal from, to;

    for (int second = 0; second < 3; second += 2) { /* again, or the third */
        open_both(&from, &to);
        for (int i = 0; i < 3; i++)
            coll__seal_put(&from, records[i], in, sizeof(in));
        ck_assert_int_eq(coll__seal_take(&to, out, records[0], sizeof(in)), 0);
        ck_assert_int_ne(coll__seal_take(&to, out, records[second], sizeof(in)),
                         0);
    }
}
END_TEST

START_TEST(the_other_direction_does_not_open)
{
    unsigned char in[32] = {7}, out[32], record[48];
    struct coll__seal from, to;

    coll__seal_init(&from, session, "connector");
    coll__seal_init(&to, session, "listener");
    coll__seal_put(&from, record, in, sizeof(in));
    ck_assert_int_ne(coll__seal_take(&to, out, record, sizeof(in)), 0);
}
END_TEST

/* ---- what a stranger on the way sees ------------------------------------- */

#define PATTERN "these words are nobody else's"

static atomic_long n_bytes; /* to sockets */
static atomic_int n_seen;   /* buffers that have the pattern */

static void look_at(const void *bytes, size_t len)
{
    atomic_fetch_add(&n_bytes, (long)len);
    if (memmem(bytes, len, PATTERN, strlen(PATTERN)))
        atomic_fetch_add(&n_seen, 1);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "send");
    look_at(bytes, len);
    return real(fd, bytes, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    for (size_t i = 0; i < message->msg_iovlen; i++)
        look_at(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    return real(fd, message, flags);
}

/* Words go by broadcast, sends and the control connections' failure text. */
static int pass_words(struct world_rank *me)
{
    int is_sealed = *(int *)me->arg;
    struct coll_comm *comm = world_join(me);
    static char words[300000];

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, strstr(coll_comm_transports(comm), "tcp"));
    for (size_t at = 0; !me->rank && at < sizeof(words) - 64; at += 64)
        memcpy(words + at, PATTERN, strlen(PATTERN));
    for (size_t n = 64; n <= sizeof(words); n = n * 6 + 1)
        WORLD_CHECK(me,
                    !coll_broadcast(words, words, n, COLL_I8, 0, comm, NULL));
    WORLD_CHECK(me, !memcmp(words + 640, PATTERN, strlen(PATTERN)));
    WORLD_CHECK(me, !world_barrier(me, comm));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    WORLD_CHECK(me, atomic_load(&n_bytes) > 0);
    WORLD_CHECK(me, !is_sealed || !atomic_load(&n_seen));
    WORLD_CHECK(me, is_sealed || me->rank || atomic_load(&n_seen));
    return 0;
}

/* _i: sealed or, so that the test would notice, not. */
START_TEST(no_word_is_sent_as_it_is)
{
    int is_sealed = _i;

    setenv("COLL_TRANSPORTS", "self,tcp", 1);
    setenv("COLL_NET_ENCRYPT", is_sealed ? "1" : "0", 1);
    for (int size = 2; size <= 4; size++)
        ck_assert_int_eq(world_fork(size, pass_words, &is_sealed, DEADLINE), 0);
}
END_TEST

/* ---- who disagrees ------------------------------------------------------- */

static int disagree(struct world_rank *me)
{
    setenv("COLL_NET_ENCRYPT", me->rank == me->size - 1 ? "1" : "0", 1);
    setenv("COLL_TIMEOUT", "20", 1);
    WORLD_CHECK(me, !world_join(me));
    WORLD_CHECK(
        me,
        me->rank < me->size - 1 ||
            strstr(
                coll_last_error(),
                "it has another COLL_NET_ENCRYPT; set the same on all ranks)"));
    /* and nothing of secrets */
    WORLD_CHECK(me, !strstr(coll_last_error(), "on all ranks);"));
    return 0;
}

START_TEST(ranks_that_disagree_say_so)
{
    for (int size = 2; size <= 3; size++)
        ck_assert_int_eq(world_fork(size, disagree, NULL, DEADLINE), 0);
}
END_TEST

static int have_no_way(struct world_rank *me)
{
    WORLD_CHECK(me, !world_join(me));
    WORLD_CHECK(me, strstr(coll_last_error(), "of which ucx does not encrypt"));
    WORLD_CHECK(me, strstr(coll_last_error(), "add tcp to COLL_TRANSPORTS"));
    return 0;
}

START_TEST(ucx_is_not_used_for_it)
{
    setenv("COLL_TRANSPORTS", "self,ucx", 1);
    setenv("COLL_NET_ENCRYPT", "1", 1);
    ck_assert_int_eq(world_fork(2, have_no_way, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seal");
    TCase *records = suite_case(suite, "records", 20);
    TCase *jobs = suite_case(suite, "jobs", 2 * DEADLINE);

    tcase_add_test(records, records_open_in_their_order);
    tcase_add_test(records, keys_change_and_no_record_is_like_another);
    tcase_add_loop_test(records, a_changed_bit_is_noticed, 0, 48);
    tcase_add_test(records, what_is_repeated_or_left_out_is_noticed);
    tcase_add_test(records, the_other_direction_does_not_open);
    tcase_add_loop_test(jobs, no_word_is_sent_as_it_is, 0, 2);
    tcase_add_test(jobs, ranks_that_disagree_say_so);
    tcase_add_test(jobs, ucx_is_not_used_for_it);
    return suite_run(suite);
}
