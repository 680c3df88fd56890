/* SPDX-License-Identifier: BSD-3-Clause */
/* test_match.c - which receive takes which message: against MPI's rules read word by word,
 * at random, and in a few cases by hand. */
#include "lib/tags/match.h"
#include "include/coll/coll.h"
#include "tests/support/oracle.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

#define MOST 400 /* events of a run */
#define RANKS 5
#define TAGS 4

/* One event: a receive is posted, or a message comes.  partner: the event that it was
 * matched with, or -1. */
struct event {
    int is_receive, source, tag, partner;
};

/* ---- the oracle ------------------------------------------------------------ */

static int fits(const struct event *receive, const struct event *message)
{
    return (receive->source == COLL_ANY_RANK ||
            receive->source == message->source) &&
           (receive->tag == COLL_ANY_TAG || receive->tag == message->tag);
}

/* Match event n: with the first earlier event of the other kind that has no partner and
 * fits. */
static void judge(struct event *events, int n)
{
    struct event *now = &events[n];

    now->partner = -1;
    for (int i = 0; i < n; i++) {
        struct event *then = &events[i];

        if (then->is_receive == now->is_receive || then->partner >= 0 ||
            !fits(now->is_receive ? now : then, now->is_receive ? then : now))
            continue;
        now->partner = i;
        then->partner = n;
        return;
    }
}

/* ---- the matcher ----------------------------------------------------------- */

static int index_of(const struct coll__envelope *envelopes,
                    const struct coll__envelope *found)
{
    return found ? (int)(found - envelopes) : -1;
}

/* Have the matcher judge event n; returns its partner. */
static int match(struct coll__matcher *m, struct coll__envelope *envelopes,
                 const struct event *now, int n)
{
    struct coll__envelope *own = &envelopes[n], *found;
    int seen = -1;

    *own = (struct coll__envelope){.source = now->source, .tag = now->tag};
    if (now->is_receive) {
        seen = index_of(envelopes, coll__match_look(m, now->source, now->tag));
        found = coll__match_receive(m, now->source, now->tag);
        ck_assert_int_eq(index_of(envelopes, found), seen);
        if (!found)
            coll__match_post(m, own);
    } else {
        found = coll__match_message(m, now->source, now->tag);
        if (!found)
            coll__match_keep(m, own);
    }
    return index_of(envelopes, found);
}

static struct event draw(uint64_t *state, int wild)
{
    struct event e = {.is_receive = (int)oracle_random(state, 2),
                      .source = (int)oracle_random(state, RANKS),
                      .tag = (int)oracle_random(state, TAGS)};

    if (e.is_receive && (int)oracle_random(state, 100) < wild)
        e.source = COLL_ANY_RANK;
    if (e.is_receive && (int)oracle_random(state, 100) < wild)
        e.tag = COLL_ANY_TAG;
    return e;
}

/* _i: the seed. */
START_TEST(random_receives_and_messages_match_as_mpi_says)
{
    static struct event events[MOST];
    static struct coll__envelope envelopes[MOST];
    uint64_t state = 4711 + (uint64_t)_i;
    struct coll__matcher m;
    int n_waiting = 0;

    ck_assert_int_eq(coll__matcher_init(&m, RANKS), COLL_OK);
    for (int n = 0; n < MOST; n++) {
        events[n] = draw(&state, _i % 4 * 25);
        judge(events, n);
        ck_assert_int_eq(match(&m, envelopes, &events[n], n),
                         events[n].partner);
        n_waiting += events[n].partner < 0 ? 1 : -1;
        ck_assert_int_eq(m.n_receives + m.n_messages, n_waiting);
    }
    coll__match_forget(&m);
    ck_assert_int_eq(m.n_receives + m.n_messages, 0);
    ck_assert_ptr_null(coll__match_look(&m, COLL_ANY_RANK, COLL_ANY_TAG));
    coll__matcher_fini(&m);
}
END_TEST

/* A receive from any rank that was posted first goes first, and the other way round. */
START_TEST(the_earlier_receive_wins_whatever_it_names)
{
    struct coll__envelope any = {.source = COLL_ANY_RANK, .tag = 7};
    struct coll__envelope one = {.source = 2, .tag = COLL_ANY_TAG};
    struct coll__matcher m;

    ck_assert_int_eq(coll__matcher_init(&m, RANKS), COLL_OK);
    coll__match_post(&m, _i ? &any : &one);
    coll__match_post(&m, _i ? &one : &any);
    ck_assert_ptr_eq(coll__match_message(&m, 2, 7), _i ? &any : &one);
    ck_assert_ptr_eq(coll__match_message(&m, 2, 7), _i ? &one : &any);
    ck_assert_ptr_null(coll__match_message(&m, 2, 7));
    coll__matcher_fini(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("match");
    TCase *c = tcase_create("match");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, random_receives_and_messages_match_as_mpi_says, 0,
                        200);
    tcase_add_loop_test(c, the_earlier_receive_wins_whatever_it_names, 0, 2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
