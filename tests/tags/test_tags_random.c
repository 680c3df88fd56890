/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tags_random.c - random messages with tags among ranks, against MPI's rules.
 *
 * All ranks draw the same messages.  How the messages of several senders interleave is not
 * known beforehand, so each receiver checks what it got by the two rules that say when a
 * message has overtaken another one, and when a receive has.
 */
#include "tests/tags/tags.h"
#include "tests/support/oracle.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <string.h>

#define ROUNDS 12
#define MESSAGES 60 /* of a round */
#define TAGS 3
#define LONGEST 40000 /* elements */

/* Message n of a round, in the order in which its sender sends. */
struct message {
    int from, to, tag;
    size_t count;
};

/* A receive, in the order in which they are posted, and the message that it got. */
struct receive {
    int peer, tag, got;
    struct coll_recv_status status;
};

/* How a rank names what it receives in a round; each way serves every message. */
enum way { BY_BOTH, BY_PEER, BY_TAG, BY_NOTHING, N_WAYS };

struct round {
    struct message messages[MESSAGES];
    struct receive receives[MESSAGES];
    struct coll_request *requests[2 * MESSAGES];
    int n_receives, n_requests;
    uint32_t *in[MESSAGES], *out[MESSAGES];
};

static size_t draw_count(uint64_t *state)
{
    static const unsigned most[] = {1, 10, 1000, 4000, LONGEST};

    return oracle_random(state, most[oracle_random(state, 5)]);
}

static void draw(struct round *t, uint64_t *state, int size)
{
    for (int n = 0; n < MESSAGES; n++)
        t->messages[n] =
            (struct message){.from = (int)oracle_random(state, (unsigned)size),
                             .to = (int)oracle_random(state, (unsigned)size),
                             .tag = (int)oracle_random(state, TAGS),
                             .count = draw_count(state)};
}

/* ---- this rank's part ------------------------------------------------------ */

/* Choose this rank's receives: one for each message, then shuffled. */
static void choose(struct round *t, int rank, uint64_t *own)
{
    enum way way = (enum way)oracle_random(own, N_WAYS);

    t->n_receives = t->n_requests = 0;
    for (int n = 0; n < MESSAGES; n++) {
        const struct message *m = &t->messages[n];

        if (m->to == rank)
            t->receives[t->n_receives++] = (struct receive){
                .peer =
                    way == BY_BOTH || way == BY_PEER ? m->from : COLL_ANY_RANK,
                .tag = way == BY_BOTH || way == BY_TAG ? m->tag : COLL_ANY_TAG,
                .status = {.size = sizeof(struct coll_recv_status)}};
    }
    for (int n = t->n_receives - 1; n > 0; n--) {
        int k = (int)oracle_random(own, (unsigned)n + 1);
        struct receive r = t->receives[n];

        t->receives[n] = t->receives[k];
        t->receives[k] = r;
    }
}

static int begin(struct round *t, struct coll_comm *comm,
                 const struct coll_args *args)
{
    struct coll_request **request = &t->requests[t->n_requests++];
    int rc = coll_request_create(args, comm, request);

    return rc ? rc : coll_start(*request);
}

/* Start all in order, but sends and receives interleaved at random, with tests between. */
static int begin_all(struct world_rank *me, struct round *t,
                     struct coll_comm *comm, uint64_t *own)
{
    int sent = 0, posted = 0;

    while (sent < MESSAGES || posted < t->n_receives) {
        struct coll_args args;

        if (oracle_random(own, 4) == 0 && t->n_requests)
            WORLD_CHECK(
                me,
                coll_test(
                    t->requests[oracle_random(own, (unsigned)t->n_requests)]) >=
                    0);
        if (sent < MESSAGES && t->messages[sent].from != me->rank) {
            sent++;
        } else if (sent < MESSAGES &&
                   (posted == t->n_receives || oracle_random(own, 2))) {
            const struct message *m = &t->messages[sent];

            tags_fill(t->in[sent], m->count, m->from, m->to, sent);
            args = tags_send(t->in[sent], m->count, m->to, m->tag);
            WORLD_CHECK(me, !begin(t, comm, &args));
            sent++;
        } else if (posted < t->n_receives) {
            struct receive *r = &t->receives[posted];

            args =
                tags_recv(t->out[posted], LONGEST, r->peer, r->tag, &r->status);
            WORLD_CHECK(me, !begin(t, comm, &args));
            posted++;
        }
    }
    return 0;
}

static int end_all(struct world_rank *me, struct round *t, uint64_t *own)
{
    int first = (int)oracle_random(own, (unsigned)t->n_requests + 1);

    for (int n = 0; n < t->n_requests; n++) {
        struct coll_request *request = t->requests[(first + n) % t->n_requests];

        WORLD_CHECK(me, !coll_wait(request, 0));
        WORLD_CHECK(me, !coll_request_destroy(request));
    }
    return 0;
}

/* ---- what it got ----------------------------------------------------------- */

/* Find the message that a receive got, by its content where it has any. */
static int find(const struct round *t, const struct receive *r, int rank,
                const uint32_t *out, const int *is_taken)
{
    for (int n = 0; n < MESSAGES; n++) {
        const struct message *m = &t->messages[n];

        if (!is_taken[n] && m->to == rank && m->from == r->status.source &&
            m->tag == r->status.tag && m->count == r->status.count &&
            tags_are(out, m->count, m->from, rank, n))
            return n;
    }
    return -1;
}

static int matches(const struct receive *r, const struct message *m)
{
    return (r->peer == COLL_ANY_RANK || r->peer == m->from) &&
           (r->tag == COLL_ANY_TAG || r->tag == m->tag);
}

/* `a` was posted before `b`.  Did b get an earlier message of the same sender, although a
 * matches that message too?  Then one of the two has overtaken the other. */
static int is_overtaken(const struct round *t, const struct receive *a,
                        const struct receive *b)
{
    const struct message *of_a = &t->messages[a->got];
    const struct message *of_b = &t->messages[b->got];

    return of_a->from == of_b->from && b->got < a->got && matches(a, of_b);
}

static int check(struct world_rank *me, struct round *t)
{
    int is_taken[MESSAGES] = {0};

    for (int n = 0; n < t->n_receives; n++) {
        struct receive *r = &t->receives[n];

        r->got = find(t, r, me->rank, t->out[n], is_taken);
        WORLD_CHECK(me, r->got >= 0);
        WORLD_CHECK(me, matches(r, &t->messages[r->got]));
        is_taken[r->got] = 1;
    }
    for (int b = 0; b < t->n_receives; b++)
        for (int a = 0; a < b; a++)
            WORLD_CHECK(me, !is_overtaken(t, &t->receives[a], &t->receives[b]));
    return 0;
}

static int random_rounds(struct world_rank *me)
{
    static struct round t;
    struct coll_comm *comm = world_join(me);
    uint64_t state = *(const uint64_t *)me->arg;
    uint64_t own = state * 31 + (uint64_t)me->rank;

    WORLD_CHECK(me, comm);
    for (int n = 0; n < MESSAGES; n++) {
        t.in[n] = malloc(LONGEST * sizeof(uint32_t));
        t.out[n] = malloc(LONGEST * sizeof(uint32_t));
        WORLD_CHECK(me, t.in[n] && t.out[n]);
    }
    for (int n = 0; n < ROUNDS; n++) {
        draw(&t, &state, me->size);
        choose(&t, me->rank, &own);
        if (begin_all(me, &t, comm, &own) || end_all(me, &t, &own) ||
            check(me, &t))
            return 1;
        WORLD_CHECK(me, !coll_barrier(comm, NULL));
    }
    for (int n = 0; n < MESSAGES; n++) {
        free(t.in[n]);
        free(t.out[n]);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(random_messages_do_not_overtake_each_other)
{
    static const int sizes[] = {1, 2, 3, 5, 9};
    uint64_t seed = 99 + (uint64_t)_i;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(
        world_fork(sizes[_i / 2 % 5], random_rounds, &seed, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tags_random");
    TCase *c = suite_case(suite, "tags_random", 2 * DEADLINE);

    patient_timeout(30);
    tcase_add_loop_test(c, random_messages_do_not_overtake_each_other, 0, 20);
    return suite_run(suite);
}
