/* SPDX-License-Identifier: BSD-3-Clause */
/* prove.c - problems of all shapes, and the proof of an algorithm for each. */
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca77u;

    x = (x ^ x >> 15) * 0x2c1b3c6du;
    return x ^ x >> 13;
}

/* ---- the ranks' problems -------------------------------------------------- */

/* Return the elements that rank r sends to rank q: about trial->count, often 0. */
static size_t given(const struct coll__trial *t, int r, int q)
{
    uint32_t x = mix(t->seed + (uint32_t)r * 257, (uint32_t)q);

    return x % 4 ? x / 4 % (2 * t->count + 1) : 0;
}

/* Parts of counts[r] elements, packed or with gaps between them. */
static void place_parts(const struct coll__trial *t, const size_t *counts,
                        size_t *displs, int may_gap)
{
    size_t gap = may_gap ? t->seed % 3 : 0, at = gap;

    for (int r = 0; r < t->nranks; r++) {
        displs[r] = at;
        at += counts[r] + gap;
    }
}

/* Give rank r its arrays, out of numbers[4 * nranks]. */
static void set_counts(const struct coll__trial *t, struct coll__problem *pb,
                       size_t *numbers)
{
    size_t p = (size_t)t->nranks;
    size_t *in = numbers, *in_at = in + p, *out = in_at + p, *out_at = out + p;
    int r = pb->rank, is_gather = t->collective == COLL_ALLGATHERV ||
                                  t->collective == COLL_GATHERV;

    for (int q = 0; q < t->nranks; q++) {
        in[q] = given(t, t->collective == COLL_ALLTOALLV ? r : 0, q);
        out[q] = given(t, t->collective == COLL_ALLTOALLV ? q : 0,
                       is_gather ? q : r);
    }
    place_parts(t, in, in_at, t->collective != COLL_REDUCE_SCATTERV);
    place_parts(t, out, out_at, 1);
    switch (t->collective) {
    case COLL_ALLTOALLV:
        pb->in_counts = in;
        pb->in_displs = in_at;
        pb->out_counts = out;
        pb->out_displs = out_at;
        break;
    case COLL_ALLGATHERV:
    case COLL_GATHERV:
        pb->out_counts = out;
        pb->out_displs = out_at;
        pb->count = out[r];
        break;
    default:
        pb->in_counts = in;
        pb->in_displs = in_at;
        pb->count = in[r];
    }
}

static int has_counts(enum coll_collective collective)
{
    return collective == COLL_ALLGATHERV ||
           collective == COLL_REDUCE_SCATTERV ||
           collective == COLL_ALLTOALLV || collective == COLL_GATHERV ||
           collective == COLL_SCATTERV;
}

static void cast_rank(const struct coll__trial *t, int r,
                      struct coll__problem *pb)
{
    *pb = (struct coll__problem){.collective = t->collective,
                                 .type = t->type,
                                 .op = t->op,
                                 .order = t->order,
                                 .is_user_op = t->order == ORDER_RANKS,
                                 .root = t->root,
                                 .nranks = t->nranks,
                                 .rank = r,
                                 .count = t->count,
                                 .view = t->view};
    if (coll__is_p2p(t->collective)) { /* the root receives from the other */
        pb->collective = r == t->root ? COLL_RECV : COLL_SEND;
        pb->root = 1 - r;
    }
    pb->in_place =
        coll__problem_may_be_in_place(pb) && mix(t->seed, (uint32_t)r) % 3 == 0;
}

int coll__cast_init(struct coll__cast *cast, const struct coll__trial *trial)
{
    size_t p = (size_t)trial->nranks;
    int is_v = has_counts(trial->collective);

    cast->pbs = calloc(p, sizeof(*cast->pbs));
    cast->numbers = calloc(is_v ? 4 * p * p : 1, sizeof(size_t));
    if (!cast->pbs || !cast->numbers) {
        coll__cast_fini(cast);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < trial->nranks; r++) {
        cast_rank(trial, r, &cast->pbs[r]);
        if (is_v)
            set_counts(trial, &cast->pbs[r], cast->numbers + 4 * p * (size_t)r);
    }
    return COLL_OK;
}

void coll__cast_fini(struct coll__cast *cast)
{
    free(cast->pbs);
    free(cast->numbers);
    *cast = (struct coll__cast){0};
}

/* ---- the proof ------------------------------------------------------------ */

int coll__prove(const struct coll__algo *algo, const struct coll__trial *trial,
                char *why, size_t len)
{
    struct coll__plan *plans =
        calloc((size_t)trial->nranks, sizeof(*plans));
    struct coll__cast cast = {0};
    int rc = plans ? coll__cast_init(&cast, trial) : COLL_ERR_NOMEM;

    if (rc) {
        snprintf(why, len, "no memory for %d ranks", trial->nranks);
        free(plans);
        return rc;
    }
    if (coll__algo_refuses(algo, &cast.pbs[0])) {
        snprintf(why, len, "%s %s", algo->name,
                 coll__algo_refuses(algo, &cast.pbs[0]));
        rc = COLL_ERR_UNSUPPORTED;
    }
    for (int r = 0; r < trial->nranks && rc == COLL_OK; r++) {
        rc = coll__plan_build(algo, &cast.pbs[r], trial->chunk, &plans[r]);
        if (rc)
            snprintf(why, len, "rank %d's plan cannot be built: %s", r,
                     coll_strerror(rc));
    }
    if (rc == COLL_OK)
        rc = coll__plan_check(cast.pbs, plans, trial->seed, why, len);
    if (rc == COLL_OK)
        rc = coll__plans_run_as_listed(plans, trial->nranks,
                                       COLL__ANY_SLOTS, why, len);
    for (int r = 0; r < trial->nranks; r++)
        coll__plan_fini(&plans[r]);
    free(plans);
    coll__cast_fini(&cast);
    return rc;
}

/* ---- the machines --------------------------------------------------------- */

/* Prices with which different numbers of ranks lead to different choices. */
static void set_prices(struct coll__view *view, int p)
{
    for (int l = 0; l < view->n_levels; l++) {
        int kind = (p + l) % 7;

        view->levels[l].alpha = kind % 2 ? 1e-6 : 1e-9;
        view->levels[l].gap = kind < 4 ? 1e-9 : 0.7e-6;
        view->levels[l].beta = kind % 3 ? 1e-9 : 1e-8;
        view->levels[l].share = kind % 3 ? 1e-9 : 0.5e-9;
    }
    view->gamma = p % 5 ? 1e-10 : 1e-8;
}

int coll__views_init(struct coll__view views[COLL__N_VIEWS], int nranks)
{
    int *turns = malloc(3 * (size_t)nranks * sizeof(int)), rc = COLL_ERR_NOMEM;
    int *hosts = turns ? turns + nranks : NULL;
    int *pairs = turns ? hosts + nranks : NULL;

    for (int v = 0; v < COLL__N_VIEWS; v++)
        views[v] = (struct coll__view){0};
    for (int r = 0; r < nranks && turns; r++) {
        turns[r] = r % ((nranks + 3) / 4);
        hosts[r] = r / 3;
        pairs[r] = r / 6;
    }
    if (turns)
        rc = coll__view_init(&views[0], nranks, 1, NULL);
    if (rc == COLL_OK)
        rc = coll__view_init(&views[1], nranks, 2,
                             (const int *const[]){turns});
    if (rc == COLL_OK)
        rc = coll__view_init(&views[2], nranks, 3,
                             (const int *const[]){hosts, pairs});
    for (int v = 0; v < COLL__N_VIEWS && rc == COLL_OK; v++)
        set_prices(&views[v], nranks + v);
    if (rc)
        coll__views_fini(views);
    free(turns);
    return rc;
}

void coll__views_fini(struct coll__view views[COLL__N_VIEWS])
{
    for (int v = 0; v < COLL__N_VIEWS; v++)
        coll__view_fini(&views[v]);
}

/* ---- the shapes ----------------------------------------------------------- */

int coll__trial_at(int i, enum coll_collective collective, int nranks,
                   const struct coll__view views[COLL__N_VIEWS],
                   struct coll__trial *trial)
{
    static const enum coll_type types[] = {COLL_I32, COLL_U8, COLL_F64,
                                           COLL_BF16};
    size_t p = (size_t)nranks, counts[] = {0, 1, p - 1, p, p + 1, 31, 131, 7};
    int n = (int)ARRAY_LEN(counts), reduces = coll__reduces(collective);
    unsigned seed = mix((uint32_t)i * 31 + (uint32_t)collective,
                        (uint32_t)nranks);
    unsigned die = mix(seed, 1); /* a choice takes two bits of it */

    /* a send or a receive has two ranks */
    if (i >= n * (reduces ? 2 : 1) || (coll__is_p2p(collective) && nranks != 2))
        return 0;
    *trial = (struct coll__trial){
        .collective = collective,
        .type = types[die % 4],
        .nranks = nranks,
        .root = (int)(seed % p),
        .count = collective == COLL_BARRIER ? 1 : counts[i % n],
        .chunk = die / 4 % 2 ? 64 : 0,
        .seed = seed,
        .view = &views[i % COLL__N_VIEWS],
    };
    if (reduces) { /* the second half of the trials has a strict order */
        trial->op =
            die / 16 % 2 && !coll__is_prefix(collective) ? COLL_AVG : COLL_SUM;
        if (i >= n)
            trial->order = die / 64 % 2 ? ORDER_CANONICAL : ORDER_RANKS;
        if (trial->order == ORDER_RANKS)
            trial->op = COLL_SUM;
    }
    if (collective == COLL_BARRIER) {
        trial->type = COLL_U8;
        trial->op = COLL_MAX;
    }
    return 1;
}
