/* SPDX-License-Identifier: BSD-3-Clause */
/* test_scale.c - what the first communicator of 16,384 ranks costs each rank:
 * bytes, sockets and rounds, by the book that rank 0 keeps (lib/boot/rendezvous_table.h)
 * and by the messages that the ranks exchange.
 *
 * Ranks come in any order within two seconds; every message takes a tenth of a
 * millisecond.  Then the tree is connected, and who is who goes up and down it.
 */
#include "lib/boot/rendezvous_table.h"
#include "lib/boot/rendezvous_msg.h"
#include "lib/ctrl/ctrl_card.h"
#include "lib/ctrl/ctrl_int.h"
#include "lib/net/handshake.h"
#include "lib/net/tree.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COME_WITHIN 2.0 /* s */
#define MESSAGE 1e-4    /* s */
#define PAUSE 0.25      /* s, of a caller that is told to come again */

enum what { CALLS, IS_HERE, BRINGS, LEAVES };

struct event {
    double when;
    int rank;
    enum what what;
};

struct count {
    size_t bytes; /* sent and received */
    int n_sockets, most_sockets;
    int n_rounds; /* a message and its answer, one after another */
};

static struct world {
    int size, n_events;
    struct rendezvous_table book;
    struct event *heap;
    struct count *rendezvous, *tree; /* [size] */
    double now;
} world;

/* ---- what happens when ------------------------------------------------------ */

static void swap(struct event *a, struct event *b)
{
    struct event c = *a;

    *a = *b;
    *b = c;
}

static void push(int rank, enum what what, double delay)
{
    struct event *h = world.heap;
    int i = world.n_events++;

    h[i] = (struct event){world.now + delay, rank, what};
    for (; i && h[i].when < h[(i - 1) / 2].when; i = (i - 1) / 2)
        swap(&h[i], &h[(i - 1) / 2]);
}

static struct event pop(void)
{
    struct event *h = world.heap, first = h[0];
    int n = --world.n_events, i = 0;

    h[0] = h[n];
    for (int j = 1; j < n; i = j, j = 2 * i + 1) {
        if (j + 1 < n && h[j + 1].when < h[j].when)
            j++;
        if (h[i].when <= h[j].when)
            break;
        swap(&h[i], &h[j]);
    }
    return first;
}

/* ---- who says what ---------------------------------------------------------- */

static void passes(struct count *counts, int a, int b, size_t bytes)
{
    counts[a].bytes += bytes;
    counts[b].bytes += bytes;
}

static void message(int rank, size_t len)
{
    passes(world.rendezvous, 0, rank, sizeof(struct tcp_head) + len);
}

static void connects(struct count *counts, int a, int n)
{
    struct count *c = &counts[a];

    c->n_sockets += n;
    if (c->n_sockets > c->most_sockets)
        c->most_sockets = c->n_sockets;
}

static void goes(int rank, enum tcp_say say)
{
    connects(world.rendezvous, rank, -1);
    connects(world.rendezvous, 0, -1);
    coll__rendezvous_table_said(&world.book, rank, say);
    coll__rendezvous_table_leave(&world.book, rank);
}

static void say(int rank, enum tcp_say what)
{
    struct rendezvous_table *book = &world.book;
    int may_stay = coll__rendezvous_table_may_stay(book);

    if (what == SAY_NOTHING)
        return;
    world.rendezvous[rank].n_rounds++;
    if (what == SAY_AGAIN) {
        message(rank, sizeof(struct tcp_again));
        goes(rank, what);
        push(rank, CALLS, coll__rendezvous_table_pause(book) / 1e3);
        return;
    }
    coll__rendezvous_table_said(book, rank, what);
    if (what == SAY_WELCOME) {
        message(rank, sizeof(struct tcp_welcome));
        push(rank, BRINGS, 2 * MESSAGE);
        return;
    }
    message(rank, sizeof(struct ctrl_peer));
    if (!may_stay)
        push(rank, LEAVES, 2 * MESSAGE);
}

static void handshake(int rank)
{
    size_t first = sizeof(struct coll__hello) + sizeof(struct challenge);

    world.rendezvous[rank].n_rounds++;
    passes(world.rendezvous, 0, rank, first);
    if (coll__rendezvous_table_is_full(&world.book)) {
        push(rank, CALLS, PAUSE);
        return;
    }
    passes(world.rendezvous, 0, rank, sizeof(struct proof));
    connects(world.rendezvous, 0, 1);
    connects(world.rendezvous, rank, 1);
    coll__rendezvous_table_come(&world.book, rank);
    push(rank, IS_HERE, 3 * MESSAGE);
}

static void be_here(int rank)
{
    struct rendezvous_table *book = &world.book;
    int n_missing = book->n_missing;
    enum tcp_say what = coll__rendezvous_table_here(book, rank);

    message(rank, COLL__HOST_BYTES);
    if (!n_missing || book->n_missing) {
        say(rank, what);
        return;
    }
    for (int r = 1; r < book->size; r++)
        if (book->step[r] == STEP_HERE)
            say(r, SAY_WELCOME);
    coll__rendezvous_table_block(book, 0);
}

static void bring(int rank)
{
    struct rendezvous_table *book = &world.book;

    message(rank, sizeof(struct ctrl_peer));
    say(rank, coll__rendezvous_table_block(book, rank));
    for (int j = 0; j < coll__tree_n_children(rank, book->size); j++) {
        int child = coll__tree_child(rank, book->size, j);

        if (book->step[child] == STEP_WAIT)
            say(child, SAY_PARENT);
    }
}

static void happen(const struct event *e)
{
    world.now = e->when;
    if (e->what == CALLS)
        handshake(e->rank);
    else if (e->what == IS_HERE)
        be_here(e->rank);
    else if (e->what == BRINGS)
        bring(e->rank);
    else {
        message(e->rank, 0);
        goes(e->rank, SAY_NOTHING);
    }
}

/* ---- the tree ---------------------------------------------------------------- */

static int depth_of(int size)
{
    int n = 0;

    while (1 << n < size)
        n++;
    return n;
}

/* Each rank calls its parent, and the ranks' cards go up and down. */
static void grow(void)
{
    size_t handshake = sizeof(struct coll__hello) + sizeof(struct challenge) +
                       sizeof(struct proof);
    size_t frame = sizeof(struct coll__wire_head),
           card = sizeof(struct ctrl_peer);

    for (int r = 1; r < world.size; r++) {
        int up = coll__tree_parent(r, world.size);

        passes(world.tree, up, r, handshake + 2 * frame);
        passes(world.tree, up, r,
               2 * frame + card * (size_t)(coll__tree_span(r, world.size) +
                                           world.size));
        connects(world.tree, up, 1);
        connects(world.tree, r, 1);
        ck_assert_int_le(coll__tree_depth(r, world.size), depth_of(world.size));
    }
    for (int r = 0; r < world.size; r++)
        world.tree[r].n_rounds = 2 + 2 * depth_of(world.size);
}

/* ---- the account ------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct count *x = a, *y = b;

    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int most_rounds(const struct count *counts)
{
    int most = 0;

    for (int r = 0; r < world.size; r++)
        if (counts[r].n_rounds > most)
            most = counts[r].n_rounds;
    return most;
}

static void print(const char *name, const struct count *counts)
{
    size_t n = (size_t)world.size;
    struct count *sorted = malloc((n - 1) * sizeof(*sorted));

    memcpy(sorted, counts + 1, (n - 1) * sizeof(*sorted));
    qsort(sorted, n - 1, sizeof(*sorted), by_bytes);
    printf(
        "%6d ranks, %-10s: rank 0 %zu bytes, %d sockets, %d rounds; "
        "median %zu bytes, %d sockets, %d rounds; most %zu bytes, %d rounds\n",
        world.size, name, counts[0].bytes, counts[0].most_sockets,
        counts[0].n_rounds, sorted[(n - 1) / 2].bytes,
        sorted[(n - 1) / 2].most_sockets, sorted[(n - 1) / 2].n_rounds,
        sorted[n - 2].bytes, most_rounds(counts));
    free(sorted);
}

static void simulate(int size)
{
    size_t n = (size_t)size;

    world = (struct world){.size = size};
    world.heap = calloc(4 * n, sizeof(*world.heap));
    world.rendezvous = calloc(n, sizeof(*world.rendezvous));
    world.tree = calloc(n, sizeof(*world.tree));
    ck_assert_int_eq(
        coll__rendezvous_table_init(&world.book, size, COLL__TCP_SEATS), 0);
    srand(7);
    for (int r = 1; r < size; r++)
        push(r, CALLS, COME_WITHIN * rand() / RAND_MAX);
    while (world.n_events) {
        struct event e = pop();

        happen(&e);
    }
    ck_assert_int_eq(world.book.n_missing, 0);
    ck_assert_int_eq(world.book.n_unserved, 0);
    grow();
    print("rendezvous", world.rendezvous);
    print("tree", world.tree);
    printf("%6d ranks: all know their parents after %.1f s, and the last came "
           "after %.1f s\n",
           size, world.now, COME_WITHIN);
}

static void tidy_up(void)
{
    coll__rendezvous_table_fini(&world.book);
    free(world.heap);
    free(world.rendezvous);
    free(world.tree);
}

static const int sizes[] = {2, 3, 64, 257, 1000, 4096, 16384};

START_TEST(no_rank_holds_many_sockets_or_says_much)
{
    int size = sizes[_i], depth = depth_of(size);
    size_t n = (size_t)size, card = sizeof(struct ctrl_peer);

    simulate(size);
    ck_assert_int_le(world.rendezvous[0].most_sockets, 2 * COLL__TCP_SEATS);
    ck_assert_uint_le(world.rendezvous[0].bytes, 2048 * n);
    for (int r = 0; r < size; r++) {
        ck_assert_int_le(world.tree[r].most_sockets, 1 + COLL__MAX_CHILDREN);
        ck_assert_uint_le(world.tree[r].bytes, 5 * n * card + 3 * 1024);
        if (!r)
            continue;
        ck_assert_uint_le(world.rendezvous[r].bytes, 4096);
        ck_assert_int_le(world.rendezvous[r].n_rounds + world.tree[r].n_rounds,
                         4 * depth + 10);
    }
    tidy_up();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scale");
    TCase *tc = tcase_create("scale");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, no_rank_holds_many_sockets_or_says_much, 0,
                        (int)(sizeof(sizes) / sizeof(sizes[0])));
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
