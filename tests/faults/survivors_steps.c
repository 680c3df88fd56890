/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors_steps.c - what the ranks do together. */
#include "tests/faults/many.h"
#include "tests/faults/survivors.h"
#include "tests/support/work.h"
#include "lib/util/util.h"

#include <string.h>
#include <unistd.h>

static unsigned bit(int number) { return 1u << number; }

/* The victims that can still be in a communicator. */
static unsigned victims_of(const struct survivors_case *c)
{
    unsigned set = 0;

    for (int i = 0; i < c->n_deaths; i++)
        set |= bit(c->deaths[i].victim);
    return set;
}

void player_enter(struct player *p, struct coll_comm *comm)
{
    struct coll_comm *old = p->comm;
    double began;
    int rc;

    pthread_mutex_lock(&p->lock);
    p->comm = comm;
    pthread_mutex_unlock(&p->lock);
    p->me.rank = coll_comm_rank(comm);
    p->me.size = coll_comm_size(comm);
    p->generation++;
    p->step = p->n_agreed = 0;
    if (!old)
        return;
    began = coll__now();
    rc = coll_comm_async_error(old);
    coll_comm_destroy(old);
    if (rc && coll__now() - began > p->c->soon)
        player_wrong(p, "destroy of the failed communicator was not quick", 0);
}

/* ---- operations ------------------------------------------------------------ */

/* An operation has ended well: the first one without victims? */
static void note_good(struct player *p)
{
    unsigned victims = victims_of(p->c);

    if (atomic_load(&p->mine->good) > 0 ||
        victims & ~atomic_load(&p->board->gone))
        return;
    for (int r = 0; r < p->me.size; r++)
        if (victims & bit(p->members[r]))
            return;
    atomic_store(&p->mine->good, coll__now());
}

int player_meet(struct player *p)
{
    int rc, n = 0, members[SURVIVORS_ALL];

    player_begins(p, PLAY_OPERATION);
    rc = coll_allgather(&p->number, members, 1, COLL_I32, p->comm, NULL);
    if (rc)
        return rc;
    memcpy(p->members, members, sizeof(members));
    for (int r = 0; r < p->me.size; r++) {
        if (r && p->members[r] <= p->members[r - 1])
            player_wrong(p, "ranks are out of order", 0);
        n += p->members[r] == p->number;
    }
    if (n != 1)
        player_wrong(p, "this rank is not in its communicator", 0);
    note_good(p);
    return COLL_OK;
}

/* GPUs sum whole numbers: what else they do is tested elsewhere. */
static struct oracle_op draw_op(const struct player *p, uint64_t *state)
{
    struct oracle_op op;

    do
        op = oracle_draw(state, p->me.size);
    while (op.own == OWN_PREMUL);
    if (p->gpu && op.collective != COLL_BARRIER) {
        op.own = OWN_NONE;
        op.type = COLL_I32;
        op.op = COLL_SUM;
    }
    return op;
}

/* Start it as a request, and ask until it has ended. */
static int request(const struct coll_args *args, struct coll_comm *comm)
{
    struct coll_request *request = NULL;
    int rc = coll_request_create(args, comm, &request);

    if (rc)
        return rc;
    rc = coll_start(request);
    while (!rc && (rc = coll_test(request)) == COLL_IN_PROGRESS)
        rc = COLL_OK;
    coll_request_destroy(request);
    return rc;
}

static size_t bytes_of(const struct work *w, const struct oracle_layout *at)
{
    return at->len * coll_type_size(w->op.type);
}

int player_operate(struct player *p)
{
    uint64_t state = many_state(p->c->seed ^ ~p->c->number,
                                (unsigned)(p->generation << 10 | p->step));
    struct oracle_op op = draw_op(p, &state);
    struct coll_args args;
    struct work w;
    int rc;

    player_begins(p, PLAY_OPERATION);
    work_init(&w, &op, p->me.rank, &p->handles,
              !p->gpu && oracle_random(&state, 2));
    args = work_args(&w);
    if (p->gpu)
        rc = survivors_gpu_call(p->gpu, &args, bytes_of(&w, &w.in_at),
                                bytes_of(&w, &w.out_at), p->comm);
    else if (oracle_random(&state, 3))
        rc = work_call(&w, p->comm);
    else
        rc = request(&args, p->comm);
    if (rc == COLL_OK && work_check(&w, &p->me))
        player_wrong(p, "wrong data", 0);
    work_fini(&w);
    if (rc == COLL_OK)
        note_good(p);
    return rc;
}

int player_sum_up(struct player *p)
{
    unsigned victims = victims_of(p->c);
    int is_over = !(victims & ~atomic_load(&p->board->gone)), rc;

    for (int r = 0; r < p->me.size; r++)
        is_over &= !(victims & bit(p->members[r]));
    player_begins(p, PLAY_OPERATION);
    rc = coll_allreduce(&is_over, &is_over, 1, COLL_I32, COLL_MIN, p->comm,
                        NULL);
    return rc == COLL_OK && is_over ? STEP_OVER : rc;
}

/* ---- agreements and communicators -------------------------------------------- */

/* Every rank that returns from an agreement must have got the same. */
static void compare(struct player *p, uint64_t flags)
{
    int at = p->generation * 8 + p->n_agreed++;
    struct agreed *first = &p->board->agreed[at % SURVIVORS_AGREED];
    int none = 0;

    if (p->n_agreed > 8 || at >= SURVIVORS_AGREED)
        return;
    if (atomic_compare_exchange_strong(&first->is_known, &none, 1)) {
        first->flags = flags;
        atomic_store(&first->is_known, 2);
        return;
    }
    for (int i = 0; i < 100 && atomic_load(&first->is_known) < 2; i++)
        usleep(1000); /* who writes it may have died */
    if (atomic_load(&first->is_known) == 2 && first->flags != flags)
        player_wrong(p, "another rank has agreed on other flags", 0);
}

enum { WELL = 1, YOUNG = 2, OWN_BITS = 4 };

int player_agree(struct player *p, int is_well)
{
    uint64_t own = ~(uint64_t)(WELL | YOUNG | OWN_BITS << p->number), flags;
    int rc;

    own |= (is_well ? WELL : 0) | (p->has_grown ? 0 : YOUNG);
    player_begins(p, PLAY_AGREE);
    do
        flags = own, rc = coll_comm_agree(p->comm, &flags);
    while (rc == COLL_ERR_TIMEOUT);
    if (rc)
        player_wrong(p, "no agreement", rc);
    if (flags & ~own)
        player_wrong(p, "an agreement has bits that this rank did not pass", 0);
    compare(p, flags);
    if (!(flags & YOUNG)) { /* who was to make the id may have died */
        p->has_grown = 1;
        atomic_store(&p->board->no_growth, 1);
    }
    return flags & WELL;
}

/* The ranks of comm that have been given up.  There are none where a communicator's ranks
 * have not met: who is given up is the only one that dies. */
static int find_excluded(const struct player *p, unsigned given_up,
                         int exclude[])
{
    int n = 0;

    for (int r = 0; given_up && r < p->me.size; r++)
        if (given_up & bit(p->members[r]))
            exclude[n++] = r;
    return n;
}

void player_shrink(struct player *p)
{
    int exclude[SURVIVORS_ALL], n, rc;
    struct coll_comm *rest;
    unsigned given_up;

    player_begins(p, PLAY_SHRINK);
    do {
        given_up = atomic_load(&p->board->given_up) & ~p->excluded;
        n = find_excluded(p, given_up, exclude);
        rc = coll_comm_shrink(p->comm, exclude, n, COLL_SHRINK_ABORT, &rest);
    } while (rc == COLL_ERR_TIMEOUT);
    if (rc)
        player_wrong(p, "no shrink", rc);
    pthread_mutex_lock(&p->lock);
    p->excluded |= given_up;
    pthread_mutex_unlock(&p->lock);
    player_enter(p, rest);
}

/* ---- growing ----------------------------------------------------------------- */

/* Every rank and newcomer that returns from the growth must have got a communicator, or
 * none. */
static void compare_growth(struct player *p, int rc)
{
    int mine = rc ? GROWTH_FAILED : GROWTH_DONE, first = 0;

    if (!atomic_compare_exchange_strong(&p->board->growth, &first, mine) &&
        first != mine)
        player_wrong(p, "another rank has got the opposite of a growth", rc);
}

int player_grow(struct player *p)
{
    struct survivors_board *b = p->board;
    struct coll_comm *grown;
    int rc = COLL_OK;

    player_begins(p, PLAY_GROW);
    p->has_grown = 1;
    if (!p->me.rank) {
        rc = coll_get_unique_id(&b->grow_id);
        if (rc)
            player_wrong(p, "no id", rc);
        atomic_store(&b->grow_generation, p->generation);
        atomic_store(&b->grow_size, p->me.size + p->c->n_new);
        atomic_store(&b->has_grow_id, 1);
    }
    rc = coll_comm_grow(p->comm, p->c->n_new, &b->grow_id, &grown);
    compare_growth(p, rc);
    if (rc == COLL_OK)
        player_enter(p, grown);
    return rc;
}

int player_join(struct player *p)
{
    struct survivors_board *b = p->board;
    struct coll_config config = {.size = sizeof(config),
                                 .progress_thread = p->c->has_thread};
    struct coll_comm *comm;
    int rc, size;

    while (!atomic_load(&b->has_grow_id) && !atomic_load(&b->no_growth))
        usleep(1000);
    if (!atomic_load(&b->has_grow_id))
        return COLL_ERR_BOOTSTRAP;
    player_begins(p, PLAY_GROW);
    size = atomic_load(&b->grow_size);
    rc = coll_comm_create(&comm, size, &b->grow_id,
                          size - p->c->n_new + p->number - p->c->size, &config);
    compare_growth(p, rc);
    if (rc)
        return rc;
    player_enter(p, comm);
    p->generation = atomic_load(&b->grow_generation) + 1;
    p->has_grown = 1;
    return COLL_OK;
}
