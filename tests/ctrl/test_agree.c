/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agree.c - agreement under death, simulated: messages between two ranks stay in
 * order, and everything else happens in random order.  Ranks die at any moment, also with
 * messages on their way, which then arrive or not; others learn of it late. */
#include "lib/ctrl/agree.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 70
#define ROUNDS 3 /* agreements one after another */

struct letter {
    struct coll__agree_message message;
    uint64_t view[2], dead[2];
    struct letter *next;
};

struct result {
    int is_known;
    uint64_t flags, dead[2];
};

struct rank {
    struct sim *sim;
    int number;
    struct coll__agree *agree;
    int is_dead, n_entered, n_decided;
    uint64_t flags[ROUNDS + 1], seen[ROUNDS + 1][2]; /* by the number */
    struct result results[ROUNDS + 1];
};

struct sim {
    int size, n_deaths, n_sent;
    unsigned seed;
    struct rank ranks[MOST];
    struct letter *letters[MOST][MOST]; /* on their way, the first first */
    int is_connected[MOST][MOST];
    int knows[MOST][MOST]; /* was told of the death */
};

static unsigned draw(struct sim *sim, unsigned n)
{
    sim->seed = sim->seed * 1103515245u + 12345u;
    return (sim->seed >> 8) % n;
}

/* ---- what the agreement asks for ----------------------------------------- */

static void post(void *arg, int to, const struct coll__agree_message *message,
                 const uint64_t *view, const uint64_t *dead)
{
    struct rank *rank = arg;
    struct sim *sim = rank->sim;
    struct letter **at = &sim->letters[rank->number][to];
    struct letter *letter;
    size_t len = (size_t)coll__set_words(sim->size) * sizeof(*view);

    if (!sim->is_connected[rank->number][to] || sim->ranks[to].is_dead)
        return;
    letter = calloc(1, sizeof(*letter));
    ck_assert_ptr_nonnull(letter);
    letter->message = *message;
    memcpy(letter->view, view, len);
    memcpy(letter->dead, dead, len);
    while (*at)
        at = &(*at)->next;
    *at = letter;
    sim->n_sent++;
}

static void changed(void *arg) { (void)arg; }

static void decided(void *arg, uint32_t number, uint64_t flags,
                    const uint64_t *dead)
{
    struct rank *rank = arg;
    struct result *result = &rank->results[number];

    ck_assert_int_eq((int)number, rank->n_entered);
    ck_assert(!result->is_known);
    result->is_known = 1;
    result->flags = flags;
    memcpy(result->dead, dead,
           (size_t)coll__set_words(rank->sim->size) * sizeof(*dead));
    rank->n_decided++;
}

/* ---- what happens -------------------------------------------------------- */

static void enter(struct sim *sim, int r)
{
    struct rank *rank = &sim->ranks[r];
    int n = ++rank->n_entered;

    rank->flags[n] = draw(sim, 256) | draw(sim, 256) << 8;
    memcpy(rank->seen[n], coll__agree_view(rank->agree),
           (size_t)coll__set_words(sim->size) * sizeof(uint64_t));
    coll__agree_enter(rank->agree, rank->flags[n]);
}

static void learn(struct sim *sim, int r, int dead)
{
    sim->knows[r][dead] = 1;
    coll__agree_died(sim->ranks[r].agree, dead);
}

static void die(struct sim *sim, int r)
{
    sim->ranks[r].is_dead = 1;
    sim->n_deaths++;
    for (int to = 0; to < sim->size; to++) {
        struct letter **at = &sim->letters[r][to];

        while (*at && draw(sim, 3)) /* these arrive */
            at = &(*at)->next;
        while (*at) {
            struct letter *lost = *at;

            *at = lost->next;
            free(lost);
        }
    }
}

static void connect(struct sim *sim, int r, int parent)
{
    sim->is_connected[r][parent] = sim->is_connected[parent][r] = 1;
    coll__agree_connected(sim->ranks[r].agree, parent);
    coll__agree_connected(sim->ranks[parent].agree, r);
}

static void deliver(struct sim *sim, int from, int to)
{
    struct letter *letter = sim->letters[from][to];

    sim->letters[from][to] = letter->next;
    if (!sim->ranks[to].is_dead)
        ck_assert_int_eq(coll__agree_got(sim->ranks[to].agree, from,
                                         &letter->message, letter->view,
                                         letter->dead),
                         0);
    free(letter);
}

/* Must rank r learn by itself that another one has died?  Its connection ends, or its parent
 * or its child cannot be reached; all earlier messages have arrived. */
static int must_learn(const struct sim *sim, int r, int dead)
{
    return sim->ranks[dead].is_dead && !sim->knows[r][dead] &&
           !sim->letters[dead][r] &&
           (sim->is_connected[r][dead] ||
            coll__agree_parent(sim->ranks[r].agree) == dead ||
            coll__agree_is_child(sim->ranks[r].agree, dead));
}

/* Let rank r do what it can, one thing; returns whether there was any. */
static int step(struct sim *sim, int r)
{
    struct rank *rank = &sim->ranks[r];
    int first = (int)draw(sim, (unsigned)sim->size), parent;

    if (rank->is_dead)
        return 0;
    for (int i = 0; i < sim->size; i++) {
        int from = (first + i) % sim->size;

        if (sim->letters[from][r] && draw(sim, 4)) {
            deliver(sim, from, r);
            return 1;
        }
        if (must_learn(sim, r, from)) {
            learn(sim, r, from);
            return 1;
        }
    }
    parent = coll__agree_parent(rank->agree);
    if (parent >= 0 && !sim->ranks[parent].is_dead &&
        !sim->is_connected[r][parent]) {
        connect(sim, r, parent);
        return 1;
    }
    if (rank->n_entered < ROUNDS && rank->n_decided == rank->n_entered) {
        enter(sim, r);
        return 1;
    }
    return 0;
}

static int is_any_letter(const struct sim *sim)
{
    for (int r = 0; r < sim->size; r++)
        for (int from = 0; from < sim->size; from++)
            if (!sim->ranks[r].is_dead && sim->letters[from][r])
                return 1;
    return 0;
}

/* Perhaps a rank dies, or learns of a death that it need not know of. */
static void misfortune(struct sim *sim, int n_deaths)
{
    int r = (int)draw(sim, (unsigned)sim->size);
    int dead = (int)draw(sim, (unsigned)sim->size);

    if (sim->ranks[r].is_dead)
        return;
    if (sim->n_deaths < n_deaths && !draw(sim, 12 * (unsigned)sim->size))
        die(sim, r);
    else if (!draw(sim, 20) && sim->ranks[dead].is_dead &&
             !sim->knows[r][dead] && !sim->letters[dead][r])
        learn(sim, r, dead);
}

/* One thing after another, until nothing is left. */
static void run(struct sim *sim, int n_deaths)
{
    int n_idle = 0;

    while (n_idle < sim->size || is_any_letter(sim)) {
        int r = (int)draw(sim, (unsigned)sim->size);

        misfortune(sim, n_deaths);
        for (n_idle = 0; n_idle < sim->size; n_idle++, r++)
            if (step(sim, r % sim->size))
                break;
    }
}

/* ---- what must hold ------------------------------------------------------ */

static int is_part(const uint64_t *part, const uint64_t *whole)
{
    return !(part[0] & ~whole[0]) && !(part[1] & ~whole[1]);
}

/* The flags are those of all that are not dead in the result, and perhaps of some that
 * are. */
static void check_flags(const struct sim *sim, int n,
                        const struct result *result)
{
    uint64_t least = UINT64_MAX, most = UINT64_MAX;

    for (int r = 0; r < sim->size; r++) {
        const struct rank *rank = &sim->ranks[r];

        if (coll__set_has(result->dead, r)) {
            ck_assert(rank->is_dead);
        } else {
            ck_assert_int_ge(rank->n_entered, n);
            most &= rank->flags[n];
            ck_assert(is_part(rank->seen[n], result->dead));
        }
        if (rank->n_entered >= n)
            least &= rank->flags[n];
    }
    ck_assert(!(result->flags & ~most));
    ck_assert(!(least & ~result->flags));
}

static void check(const struct sim *sim)
{
    for (int n = 1; n <= ROUNDS; n++) {
        const struct result *first = NULL;

        for (int r = 0; r < sim->size; r++) {
            const struct result *result = &sim->ranks[r].results[n];

            ck_assert(result->is_known || sim->ranks[r].is_dead);
            if (!result->is_known)
                continue;
            if (!first) {
                first = result;
                check_flags(sim, n, result);
            }
            ck_assert_uint_eq(result->flags, first->flags);
            ck_assert(is_part(result->dead, first->dead) &&
                      is_part(first->dead, result->dead));
        }
    }
}

static struct sim *begin(int size, unsigned seed)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    ck_assert_ptr_nonnull(sim);
    sim->size = size;
    sim->seed = seed;
    for (int r = 0; r < size; r++) {
        struct rank *rank = &sim->ranks[r];
        struct coll__agree_ops ops = {post, changed, decided, rank};
        int parent;

        rank->sim = sim;
        rank->number = r;
        rank->agree = coll__agree_new(r, size, &ops);
        ck_assert_ptr_nonnull(rank->agree);
        parent = coll__agree_parent(rank->agree);
        if (parent >= 0)
            sim->is_connected[r][parent] = sim->is_connected[parent][r] = 1;
    }
    return sim;
}

static void end(struct sim *sim)
{
    for (int r = 0; r < sim->size; r++) {
        coll__agree_free(sim->ranks[r].agree);
        for (int to = 0; to < sim->size; to++)
            while (sim->letters[r][to]) {
                struct letter *letter = sim->letters[r][to];

                sim->letters[r][to] = letter->next;
                free(letter);
            }
    }
    free(sim);
}

START_TEST(without_deaths_four_messages_a_connection)
{
    for (int size = 1; size <= 17; size++) {
        struct sim *sim = begin(size, (unsigned)size);

        run(sim, 0);
        check(sim);
        ck_assert_int_eq(sim->n_sent, ROUNDS * 4 * (size - 1));
        end(sim);
    }
}
END_TEST

START_TEST(who_lives_learns_what_anyone_learned)
{
    for (unsigned seed = 1; seed <= 4000; seed++) {
        int size = 2 + (int)(seed % 8);
        struct sim *sim = begin(size, seed);

        run(sim, 1 + (int)(seed / 8 % (unsigned)(size - 1)));
        check(sim);
        end(sim);
    }
}
END_TEST

START_TEST(many_ranks_of_which_many_die)
{
    for (unsigned seed = 1; seed <= 40; seed++) {
        struct sim *sim = begin(MOST - (int)(seed % 20), seed);

        run(sim, 1 + (int)(seed % (unsigned)(sim->size - 1)));
        check(sim);
        end(sim);
    }
}
END_TEST

/* Rank 1 is accused: it may not go on, and the others do without it. */
START_TEST(who_is_taken_for_dead_hears_of_it)
{
    struct sim *sim = begin(3, 1);

    coll__agree_died(sim->ranks[0].agree, 1);
    ck_assert(!coll__agree_is_expelled(sim->ranks[1].agree));
    run(sim, 0);
    ck_assert(coll__agree_is_expelled(sim->ranks[1].agree));
    for (int r = 0; r < 3; r += 2)
        ck_assert_uint_eq(sim->ranks[r].results[1].dead[0], 1 << 1);
    end(sim);
}
END_TEST

START_TEST(a_wrong_step_is_refused)
{
    struct sim *sim = begin(2, 1);
    struct coll__agree_message message = {.step = AGREE_DECIDE + 1};
    uint64_t none[2] = {0};

    ck_assert_int_eq(
        coll__agree_got(sim->ranks[0].agree, 1, &message, none, none), -1);
    end(sim);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agree");
    TCase *cases = tcase_create("agree");

    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, without_deaths_four_messages_a_connection);
    tcase_add_test(cases, who_lives_learns_what_anyone_learned);
    tcase_add_test(cases, many_ranks_of_which_many_die);
    tcase_add_test(cases, who_is_taken_for_dead_hears_of_it);
    tcase_add_test(cases, a_wrong_step_is_refused);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
