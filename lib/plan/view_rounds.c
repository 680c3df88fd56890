/* SPDX-License-Identifier: BSD-3-Clause */
/* view_rounds.c - the time of rounds, message by message.
 *
 * Each rank's vector is cut into cells.  A message goes in pieces of whole cells; a piece
 * leaves when its cells are ready, and its cells are ready on the receiver's side when it
 * has arrived and, where it is reduced, has been added.
 */
#include "lib/plan/view_rounds.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MESSAGES 512 /* of all ranks, in all rounds */
#define MOST_PIECES 8     /* of a message */
#define MOST_ALL_PIECES 1024
#define MOST_CELLS 64 /* of a rank */

struct walk {
    const struct coll__rounds *rounds;
    struct coll__lanes lanes;
    int n_cells;   /* of a rank */
    double *ready; /* [nranks * n_cells]: before this round */
    double *next;  /* the same after this round */
    double end;    /* of all work that nobody waits for */
    struct coll__round_message *messages; /* [nranks] */
    int *pieces; /* [nranks]: of each rank's message, 0: none */
};

int coll__rounds_are_followed(const struct coll__rounds *rounds)
{
    const struct coll__view *view = rounds->pb->view;

    return !view->is_even && rounds->n <= MOST_MESSAGES / view->nranks;
}

/* ---- cells --------------------------------------------------------------- */

/* Cells [from, to). */
struct cells {
    int from, to;
};

/* Return the cells of part i of k parts of some blocks. */
static struct cells cells_of(const struct walk *w, int at, int n_blocks, int i,
                             int k)
{
    double scale = (double)w->n_cells / w->rounds->n_blocks;
    double from = at + (double)n_blocks * i / k;
    double to = at + (double)n_blocks * (i + 1) / k;
    struct cells c = {(int)(from * scale + 0.001),
                      (int)ceil(to * scale - 0.001)};

    c.to = min_int(c.to, w->n_cells);
    c.from = min_int(c.from, c.to - 1);
    return c;
}

static double ready_at(const struct walk *w, int rank, struct cells c)
{
    const double *ready = w->ready + (size_t)rank * (size_t)w->n_cells;
    double time = 0;

    for (int i = c.from; i < c.to; i++)
        time = max_double(time, ready[i]);
    return time;
}

static void set_ready(struct walk *w, int rank, struct cells c, double time)
{
    double *next = w->next + (size_t)rank * (size_t)w->n_cells;

    for (int i = c.from; i < c.to; i++)
        next[i] = max_double(next[i], time);
}

/* ---- messages ------------------------------------------------------------ */

/* Copy what a piece is made of; half of it may be there earlier.  Returns when it is
 * packed. */
static double pack(struct walk *w, int rank, struct cells all, double n)
{
    struct cells early = {all.from, (all.from + all.to + 1) / 2};

    coll__lanes_work(&w->lanes, rank, ready_at(w, rank, early), n / 2);
    return coll__lanes_work(&w->lanes, rank, ready_at(w, rank, all), n / 2);
}

/* Follow piece i of the message that a rank sends. */
static void follow(struct walk *w, int rank, int i)
{
    const struct coll__round_message *m = &w->messages[rank];
    int k = w->pieces[rank];
    struct cells from = cells_of(w, m->at, m->n_blocks, i, k);
    struct cells to = cells_of(w, m->put, m->n_blocks, i, k);
    double n = m->n / k, mine = 0, there, left;
    struct coll__sending sending = {rank, m->to, n, ready_at(w, rank, from), 1};

    if (m->packed > 0)
        sending.ready = pack(w, rank, from, m->packed / k);
    if (m->n_works || m->is_ordered)
        mine = ready_at(w, m->to, to);
    if (n > COLL__EAGER)
        sending.ready = max_double(sending.ready, mine);
    there = coll__lanes_send(&w->lanes, &sending, &left);

    for (int j = 0; j < m->n_works; j++)
        there = coll__lanes_work(&w->lanes, m->to, max_double(there, mine), n);
    if (m->copied > 0)
        w->end = max_double(
            w->end, coll__lanes_work(&w->lanes, m->to, there, m->copied / k));
    set_ready(w, m->to, to, there);
    if (w->rounds->is_held)
        set_ready(w, rank, from, left);
}

static int pieces_of(const struct walk *w, const struct coll__round_message *m)
{
    double cells = (double)m->n_blocks * w->n_cells / w->rounds->n_blocks;
    double pieces =
        m->pieces ? m->pieces : ceil(coll__pieces(w->lanes.view, m->n));
    double most =
        MOST_ALL_PIECES / ((double)w->rounds->n * w->rounds->pb->nranks);

    most = min_double(min_double(most, MOST_PIECES), cells);
    return (int)max_double(1, min_double(pieces, most));
}

static void follow_round(struct walk *w, int round)
{
    const struct coll__rounds *rounds = w->rounds;
    int p = rounds->pb->nranks, most = 0;

    for (int r = 0; r < p; r++) {
        struct coll__round_message *m = &w->messages[r];

        *m = (struct coll__round_message){0};
        w->pieces[r] = 0;
        if (rounds->send(rounds->pb, round, r, m))
            w->pieces[r] = pieces_of(w, m);
        most = w->pieces[r] > most ? w->pieces[r] : most;
    }
    for (int i = 0; i < most; i++)
        for (int r = 0; r < p; r++)
            if (i < w->pieces[r])
                follow(w, r, i);
    memcpy(w->ready, w->next,
           (size_t)p * (size_t)w->n_cells * sizeof(*w->ready));
}

/* ---- the whole ----------------------------------------------------------- */

static int count_cells(const struct coll__rounds *rounds)
{
    const struct coll__view *view = rounds->pb->view;
    double n = rounds->n_blocks * ceil(coll__pieces(view, rounds->block));

    return (int)min_double(n, MOST_CELLS);
}

static int walk_init(struct walk *w, const struct coll__rounds *rounds)
{
    size_t p = (size_t)rounds->pb->nranks, n;

    *w = (struct walk){.rounds = rounds, .n_cells = count_cells(rounds)};
    n = p * (size_t)w->n_cells;
    w->ready = calloc(2 * n, sizeof(*w->ready));
    w->next = w->ready ? w->ready + n : NULL;
    w->messages = calloc(p, sizeof(*w->messages));
    w->pieces = calloc(p, sizeof(*w->pieces));
    return coll__lanes_init(&w->lanes, rounds->pb->view) == COLL_OK &&
                   w->ready && w->messages && w->pieces
               ? COLL_OK
               : COLL_ERR_NOMEM;
}

/* Let each rank copy its vector before the first round, cell after cell. */
static void copy_first(struct walk *w, double n)
{
    for (int r = 0; r < w->rounds->pb->nranks; r++)
        for (int i = 0; i < w->n_cells; i++)
            w->ready[r * w->n_cells + i] = w->next[r * w->n_cells + i] =
                coll__lanes_work(&w->lanes, r, 0, n / w->n_cells);
}

/* Let each rank copy its vector after the last round, piece by piece. */
static void copy_last(struct walk *w, double n)
{
    int k = min_int((int)ceil(coll__pieces(w->lanes.view, n)), w->n_cells);

    for (int r = 0; r < w->rounds->pb->nranks; r++)
        for (int i = 0; i < k; i++) {
            struct cells c = cells_of(w, 0, w->rounds->n_blocks, i, k);
            double ready = ready_at(w, r, c);

            w->end = max_double(w->end,
                                coll__lanes_work(&w->lanes, r, ready, n / k));
        }
}

double coll__rounds_cost(const struct coll__rounds *rounds)
{
    struct walk w;
    double time = HUGE_VAL;

    if (walk_init(&w, rounds) == COLL_OK) {
        if (rounds->packed > 0)
            copy_first(&w, rounds->packed);
        for (int round = 0; round < rounds->n; round++)
            follow_round(&w, round);
        if (rounds->copied > 0)
            copy_last(&w, rounds->copied);
        time = w.end;
        for (int i = 0; i < rounds->pb->nranks * w.n_cells; i++)
            time = max_double(time, w.ready[i]);
    }
    coll__lanes_fini(&w.lanes);
    free(w.ready);
    free(w.messages);
    free(w.pieces);
    return time;
}
