/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors_rank.c - a rank's way through the game. */
#include "tests/faults/crash.h"
#include "tests/faults/many.h"
#include "tests/faults/survivors.h"
#include "lib/util/util.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void player_wrong(struct player *p, const char *what, int rc)
{
    snprintf(p->mine->words, sizeof(p->mine->words), "%.60s: %d, %.160s", what,
             rc, rc ? coll_last_error() : "");
    atomic_store(&p->mine->is_wrong, 1);
    _exit(4);
}

/* Leave the others, who are told: without the abort they would wait for this rank until the
 * deadline if they agreed. */
static _Noreturn void leave(struct player *p)
{
    coll_comm_abort(p->comm, "this rank leaves");
    coll_comm_destroy(p->comm);
    atomic_store(&p->mine->struck, coll__now());
    _exit(0);
}

/* A victim whose place never comes dies in an operation, once the others have grown
 * without it. */
static int is_time(const struct player *p, enum play play)
{
    const struct death *d = p->death;

    if (!d || atomic_load(&p->mine->due) > 0)
        return 0;
    if (play == d->at)
        return p->n_begun[play] > d->nth;
    return d->at == PLAY_GROW && p->has_grown && play == PLAY_OPERATION;
}

void player_begins(struct player *p, enum play play)
{
    static const char *const names[] = {
#define X(name, text) text,
        PLAY_MAP(X)
#undef X
    };

    snprintf(p->mine->words, sizeof(p->mine->words), "%s, step %d.%d",
             names[play], p->generation, p->step);
    p->n_begun[play]++;
    if (!is_time(p, play))
        return;
    if (p->c->kind == DEATH_LEAVE)
        leave(p);
    if (p->c->kind == DEATH_CRASH)
        crash_arm(p->death->n_calls, p->death->how, &p->mine->struck);
    atomic_store(&p->mine->due, coll__now() + p->death->delay);
}

/* Agree, and shrink if not all ranks are well.  Ranks that were given up answer no agreement,
 * so it is left out where there are any. */
static int check(struct player *p)
{
    if (!player_agree(p, 1))
        player_shrink(p);
    return COLL_OK;
}

/* Agree before a shrink, since other ranks may come from a failure. */
static int shrink(struct player *p, int is_well)
{
    if (p->c->kind != DEATH_GIVE_UP)
        player_agree(p, is_well);
    player_shrink(p);
    return COLL_OK;
}

/* The next step of all ranks of this generation. */
static int do_step(struct player *p)
{
    uint64_t state = many_state(p->c->seed ^ p->c->number << 8,
                                (unsigned)(p->generation << 10 | p->step));
    unsigned dice = oracle_random(&state, 16);

    if (p->step == 0)
        return player_meet(p);
    if (p->step == 1 && !p->has_grown)
        return player_grow(p);
    if (p->step % 4 == 3)
        return player_sum_up(p);
    if (dice >= 5 || p->c->kind == DEATH_GIVE_UP)
        return player_operate(p);
    return dice < 3 ? check(p) : shrink(p, 1);
}

/* Ranks that have been given up are stopped: nothing but an abort ends an operation. */
static void *watch(void *arg)
{
    struct player *p = arg;

    while (!atomic_load(&p->is_through)) {
        pthread_mutex_lock(&p->lock);
        if (atomic_load(&p->board->given_up) & ~p->excluded)
            coll_comm_abort(p->comm, "a rank does not go on");
        pthread_mutex_unlock(&p->lock);
        usleep(1000);
    }
    return NULL;
}

static void begin(struct player *p)
{
    struct coll_config config = {.size = sizeof(config),
                                 .progress_thread = p->c->has_thread};
    struct coll_comm *comm = NULL;
    int rc = COLL_OK;

    if (!p->number) {
        rc = coll_get_unique_id(&p->board->id);
        atomic_store(&p->board->has_id, 1);
    }
    while (!atomic_load(&p->board->has_id))
        usleep(200);
    if (!rc)
        rc = coll_comm_create(&comm, p->c->size, &p->board->id, p->number,
                              &config);
    if (rc)
        player_wrong(p, "no communicator", rc);
    player_enter(p, comm);
    p->generation = 0;
    for (int r = 0; r < p->me.size; r++)
        p->members[r] = r;
}

int survivors_play(const struct survivors_case *c, int number,
                   struct survivors_board *board)
{
    struct player p = {.c = c,
                       .board = board,
                       .mine = &board->ranks[number],
                       .death = survivors_death(c, number),
                       .number = number,
                       .has_grown = !c->n_new,
                       .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    int rc = COLL_OK;

    crash_count_ucx(&p.mine->is_ucx);
    if (c->transports == ON_GPUS)
        p.gpu = survivors_gpu_open(number);
    if (oracle_handles_init(&p.handles, number))
        return 3;
    if (number < c->size)
        begin(&p);
    else if (player_join(&p))
        return 0;
    if (c->kind == DEATH_GIVE_UP && pthread_create(&thread, NULL, watch, &p))
        return 3;
    while (rc != STEP_OVER) {
        int generation = p.generation;

        rc = do_step(&p);
        if (rc < 0)
            shrink(&p, 0);
        if (generation == p.generation)
            p.step++;
    }
    snprintf(p.mine->words, sizeof(p.mine->words), "destroy");
    atomic_store(&p.is_through, 1);
    if (c->kind == DEATH_GIVE_UP)
        pthread_join(thread, NULL);
    rc = coll_comm_destroy(p.comm);
    if (rc)
        player_wrong(&p, "destroy at the end", rc);
    atomic_store(&p.mine->is_over, 1);
    return oracle_handles_fini(&p.handles) ? 3 : 0;
}
