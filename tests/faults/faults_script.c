/* SPDX-License-Identifier: BSD-3-Clause */
/* faults_script.c - what the ranks of a case do: drawn alike on each of them, and
 * carried out with an eye on every status and every result. */
#include "tests/faults/crash.h"
#include "tests/faults/faults.h"
#include "tests/support/work.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_REQUESTS 3
#define RING_MOST 40000 /* elements */

const char *script_step_name(enum step_kind kind)
{
    static const char *const names[] = {
#define X(name, text) text,
        FAULTS_STEP_MAP(X)
#undef X
    };

    return names[kind];
}

/* ---- drawing ------------------------------------------------------------- */

int script_shares(const struct script *s, int comm, int r, int q)
{
    return s->color[comm][r] >= 0 && s->color[comm][r] == s->color[comm][q];
}

int script_size_of(const struct script *s, int comm, int r)
{
    int n = 0;

    for (int q = 0; q < s->size; q++)
        n += script_shares(s, comm, r, q);
    return n;
}

int script_rank_in(const struct script *s, int comm, int r)
{
    int n = 0;

    for (int q = 0; q < s->size; q++)
        n += script_shares(s, comm, r, q) &&
             (s->is_reversed[comm] ? q > r : q < r);
    return n;
}

static void add(struct script *s, enum step_kind kind, int comm,
                uint64_t *state)
{
    s->steps[s->n_steps++] = (struct step){
        .kind = kind, .comm = comm, .seed = oracle_random(state, 1u << 30)};
}

/* Two or three colors within those of the parent, some ranks in none. */
static void draw_colors(struct script *s, int parent, int made, uint64_t *state)
{
    int n = 2 + (int)oracle_random(state, 2);

    s->is_reversed[made] = (int)oracle_random(state, 2);
    for (int r = 0; r < s->size; r++) {
        int color = (int)oracle_random(state, (unsigned)n);

        s->color[made][r] =
            s->color[parent][r] < 0 || oracle_random(state, 8) == 0
                ? -1
                : s->color[parent][r] * 3 + color;
    }
}

/* Another communicator out of that one, when there is room for it. */
static void add_made(struct script *s, enum step_kind kind, int comm,
                     int is_live[], uint64_t *state)
{
    int made = s->n_comms;

    if (made == FAULTS_COMMS)
        return;
    add(s, kind, comm, state);
    s->steps[s->n_steps - 1].made = made;
    s->n_comms++;
    is_live[made] = 1;
    s->is_reversed[made] = s->is_reversed[comm];
    memcpy(s->color[made], s->color[comm], sizeof(s->color[made]));
    if (kind == STEP_SPLIT)
        draw_colors(s, comm, made, state);
}

static int draw_live(const struct script *s, const int is_live[],
                     uint64_t *state)
{
    int comm;

    do
        comm = (int)oracle_random(state, (unsigned)s->n_comms);
    while (!is_live[comm]);
    return comm;
}

static void add_any(struct script *s, int is_live[], uint64_t *state)
{
    int comm = draw_live(s, is_live, state);
    unsigned dice = oracle_random(state, 20);

    if (dice < 8)
        add(s, STEP_CALL, comm, state);
    else if (dice < 11)
        add(s, STEP_REQUESTS, comm, state);
    else if (dice < 13)
        add(s, STEP_RING, comm, state);
    else if (dice < 16)
        add_made(s, STEP_SPLIT, comm, is_live, state);
    else if (dice < 18)
        add_made(s, STEP_DUP, comm, is_live, state);
    else if (comm) {
        add(s, STEP_DESTROY, comm, state);
        is_live[comm] = 0;
    }
}

void script_draw(struct script *s, int size, uint64_t *state)
{
    int is_live[FAULTS_COMMS] = {1}, first, n;

    *s = (struct script){.size = size, .n_comms = 1};
    add(s, STEP_CREATE, 0, state);
    n = 3 + (int)oracle_random(state, 10);
    for (int i = 0; i < n; i++)
        add_any(s, is_live, state);
    first = (int)oracle_random(state, FAULTS_COMMS);
    for (int i = 0; i < FAULTS_COMMS; i++) {
        int comm = (first + i) % FAULTS_COMMS;

        if (is_live[comm])
            add(s, STEP_DESTROY, comm, state);
    }
}

/* ---- a rank -------------------------------------------------------------- */

struct player {
    const struct fault_case *c;
    struct board *board;
    struct world_rank me; /* its rank and size in the communicator at hand */
    int rank;             /* in the whole */
    struct coll_comm *comms[FAULTS_COMMS];
    int has_failed[FAULTS_COMMS];
    struct oracle_handles handles;
};

static int do_create(struct player *p)
{
    struct coll_config config = {.size = sizeof(config)};
    int rc = COLL_OK;

    if (p->rank == 0) {
        rc = coll_get_unique_id(&p->board->id);
        atomic_store_explicit(&p->board->has_id, 1, memory_order_release);
        if (rc)
            return rc;
    }
    return coll_comm_create(&p->comms[0], p->c->script.size, &p->board->id,
                            p->rank, &config);
}

/* Any operation but by a factor of this rank in the whole, which is another one
 * here. */
static struct oracle_op draw_op(const struct player *p, uint64_t *state)
{
    struct oracle_op op;

    do
        op = oracle_draw(state, p->me.size);
    while (op.own == OWN_PREMUL);
    return op;
}

static int do_call(struct player *p, const struct step *step, int *is_wrong)
{
    uint64_t state = step->seed;
    struct oracle_op op = draw_op(p, &state);
    struct work w;
    int rc;

    work_init(&w, &op, p->me.rank, &p->handles, (int)oracle_random(&state, 2));
    rc = work_call(&w, p->comms[step->comm]);
    if (rc == COLL_OK)
        *is_wrong = work_check(&w, &p->me);
    work_fini(&w);
    return rc;
}

/* Finish one request; the first error stays. */
static int finish(struct coll_request *request, int by_test, int rc)
{
    int now = COLL_IN_PROGRESS;

    while (by_test && now == COLL_IN_PROGRESS)
        now = coll_test(request);
    if (!by_test)
        now = coll_wait(request, 0);
    return rc ? rc : now;
}

/* Some operations under way at once.  After a failure each of them is asked, and
 * freed. */
static int do_requests(struct player *p, const struct step *step, int *is_wrong)
{
    uint64_t state = step->seed;
    int n = 1 + (int)oracle_random(&state, MOST_REQUESTS), n_made = 0, rc = 0;
    struct coll_request *requests[MOST_REQUESTS];
    struct work works[MOST_REQUESTS];

    for (; n_made < n && !rc; n_made++) {
        struct oracle_op op = draw_op(p, &state);
        struct coll_args args;

        work_init(&works[n_made], &op, p->me.rank, &p->handles, 0);
        args = work_args(&works[n_made]);
        requests[n_made] = NULL;
        rc =
            coll_request_create(&args, p->comms[step->comm], &requests[n_made]);
        if (!rc)
            rc = coll_start(requests[n_made]);
    }
    for (int i = 0; i < n_made; i++)
        if (requests[i])
            rc = finish(requests[i], (int)oracle_random(&state, 2), rc);
    for (int i = 0; i < n_made; i++) {
        if (!rc)
            *is_wrong |= work_check(&works[i], &p->me);
        if (coll_request_destroy(requests[i]))
            *is_wrong = 1; /* it still runs */
        work_fini(&works[i]);
    }
    return rc;
}

/* To the right and from the left, in a group. */
static int do_ring(struct player *p, const struct step *step, int *is_wrong)
{
    static uint32_t out[RING_MOST], in[RING_MOST];
    struct coll_comm *comm = p->comms[step->comm];
    int left = (p->me.rank + p->me.size - 1) % p->me.size, rc;
    uint64_t state = step->seed;
    size_t n = oracle_random(&state, oracle_random(&state, 2) ? 40 : RING_MOST);

    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)(i * 31 + (size_t)p->me.rank);
    rc = coll_group_start();
    coll_send(out, n, COLL_U32, (p->me.rank + 1) % p->me.size, comm, NULL);
    coll_recv(in, n, COLL_U32, left, comm, NULL);
    rc = coll_group_end();
    for (size_t i = 0; !rc && i < n; i++)
        *is_wrong |= in[i] != (uint32_t)(i * 31 + (size_t)left);
    return rc;
}

static int do_split(struct player *p, const struct step *step)
{
    const struct script *s = &p->c->script;
    int color = s->color[step->made][p->rank];

    if (step->kind == STEP_DUP)
        return coll_comm_dup(p->comms[step->comm], &p->comms[step->made]);
    return coll_comm_split(
        p->comms[step->comm], color < 0 ? COLL_NO_COLOR : color,
        s->is_reversed[step->made] ? -p->rank : p->rank, &p->comms[step->made]);
}

static int do_step(struct player *p, const struct step *step, int *is_wrong)
{
    struct coll_comm *comm = p->comms[step->comm];

    switch (step->kind) {
    case STEP_CREATE:
        return do_create(p);
    case STEP_CALL:
        return do_call(p, step, is_wrong);
    case STEP_REQUESTS:
        return do_requests(p, step, is_wrong);
    case STEP_RING:
        return do_ring(p, step, is_wrong);
    case STEP_SPLIT:
    case STEP_DUP:
        return do_split(p, step);
    default:
        p->comms[step->comm] = NULL;
        return coll_comm_destroy(comm);
    }
}

/* ---- its way through the script ------------------------------------------ */

/* A communicator that has failed says the same from then on. */
static int has_forgotten(struct coll_comm *comm, int rc)
{
    return coll_barrier(comm, NULL) != rc || coll_comm_async_error(comm) != rc;
}

static void see(struct player *p, const struct step *step, struct seen *seen)
{
    const struct script *s = &p->c->script;
    int comm = step->comm, rc;

    if (step->kind != STEP_CREATE && !p->comms[comm]) {
        seen->status = STEP_SKIPPED;
        return;
    }
    if (p->has_failed[comm] && step->kind != STEP_DESTROY) {
        seen->status = STEP_SKIPPED;
        return;
    }
    p->me.rank = script_rank_in(s, comm, p->rank);
    p->me.size = script_size_of(s, comm, p->rank);
    seen->begin = coll__now();
    rc = do_step(p, step, &seen->is_wrong);
    if (rc != COLL_OK)
        snprintf(seen->words, sizeof(seen->words), "%s", coll_last_error());
    seen->status = rc;
    seen->end = coll__now();
    if (rc != COLL_OK && step->kind != STEP_CREATE &&
        step->kind != STEP_DESTROY) {
        p->has_failed[comm] = coll_comm_async_error(p->comms[comm]) != COLL_OK;
        if (p->has_failed[comm])
            seen->is_wrong |= has_forgotten(p->comms[comm], rc);
    }
}

/* What the victim does to itself. */
static void suffer(const struct fault *f, struct fault_rank *mine)
{
    if (f->kind == FAULT_STALL) {
        atomic_store(&mine->struck, coll__now());
        usleep((useconds_t)(f->length * 1e6));
    } else if (f->kind == FAULT_CRASH) {
        crash_arm(f->n_calls, f->how, &mine->struck);
    } else if (f->kind == FAULT_EXIT) {
        atomic_store(&mine->struck, coll__now());
        if (f->how & 1)
            exit(f->how >> 1);
        _exit(f->how >> 1);
    }
}

int script_play(const struct fault_case *c, int rank, struct board *board)
{
    struct player p = {.c = c, .board = board, .rank = rank};
    struct fault_rank *mine = &board->ranks[rank];

    crash_count_sent(&mine->n_sent);
    crash_count_ucx(&mine->is_ucx);
    if (oracle_handles_init(&p.handles, rank))
        return 3;
    for (int i = 0; i < c->script.n_steps; i++) {
        struct seen *seen = &mine->seen[i];

        while (i == 0 && rank && !atomic_load(&board->has_id)) {
            if (atomic_load(&board->is_off))
                return 0;
            usleep(200);
        }
        seen->is_begun = 1;
        atomic_store_explicit(&mine->at, i + 1, memory_order_release);
        if (rank == c->fault.victim && i == c->fault.step)
            suffer(&c->fault, mine);
        see(&p, &c->script.steps[i], seen);
        seen->is_over = 1;
    }
    return oracle_handles_fini(&p.handles) ? 3 : 0;
}
