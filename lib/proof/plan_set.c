/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_set.c - a set of loaded plans, looked up by problem.
 *
 * A page holds the plans of one file.  All ranks must find the same page, so the
 * search compares only what all ranks know.  Each rank may work in place or not, so a
 * page is adapted: if the page expects the rank's input in the other buffer, the input
 * is copied there first, and the edges are inferred again.  There are no pages for
 * collectives in which a rank knows only its own counts.
 */
#include "lib/proof/plan_set.h"
#include "lib/proof/proof.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/files.h"

#include <stdlib.h>
#include <string.h>

#define N_SEEDS 3

/* The plans that were read and proven, shared by all communicators with the same
 * files. */
struct coll__shelf {
    char *paths;
    struct coll__stamp *stamps; /* [n_paths], taken before the files were read */
    int n_users;                /* plan sets, and `latest`; under the lock */
    struct coll__plan_set set;  /* its own pages */
};

static struct coll__lock lock = COLL__LOCK(NULL);
static struct coll__shelf *latest; /* under the lock */

/* ---- open ----------------------------------------------------------------- */

static uint64_t hash_text(uint64_t h, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h * 0x100000001b3u + 1; /* the ends of files count too */
}

static int judge_page(const char *path, const struct coll__plans *page)
{
    enum coll_collective collective = page->pbs[0].collective;
    char why[256] = "";
    int rc;

    if (coll__has_in_counts(collective) || coll__has_out_counts(collective)) {
        log_error("plan",
                  "COLL_PLAN_FILE: %s is a plan for %s, whose counts "
                  "may differ in each call; take the file off the list",
                  path, coll_collective_name(collective));
        return COLL_ERR_INVALID;
    }
    rc = coll__plans_check(page, N_SEEDS, why, sizeof(why));
    if (rc)
        log_error("plan",
                  "COLL_PLAN_FILE: %s is refused: %s; see coll_plan "
                  "--check",
                  path, why);
    return rc;
}

static int add_page(struct coll__plan_set *set, const char *path)
{
    struct coll__plans *page = &set->pages[set->n_pages];
    size_t len = 0;
    char *text;
    int rc = coll__plans_read(path, &text, &len);

    if (rc)
        return rc;
    set->hash = hash_text(set->hash, text, len);
    rc = coll__plans_parse(path, text, len, page);
    free(text);
    if (rc)
        return rc;
    for (int r = 0; r < page->pbs[0].nranks; r++)
        page->plans[r].algorithm = page->algorithm;
    set->n_pages++;
    return judge_page(path, page);
}

static size_t count_paths(const char *paths)
{
    size_t n = 1;

    for (; *paths; paths++)
        n += *paths == ':';
    return n;
}

static void shelf_free(struct coll__shelf *shelf)
{
    if (!shelf)
        return;
    for (int i = 0; i < shelf->set.n_pages; i++)
        coll__plans_fini(&shelf->set.pages[i]);
    free(shelf->set.pages);
    free(shelf->stamps);
    free(shelf->paths);
    free(shelf);
}

static struct coll__shelf *shelf_new(const char *paths)
{
    struct coll__shelf *shelf = calloc(1, sizeof(*shelf));
    size_t n = count_paths(paths);

    if (!shelf)
        return NULL;
    shelf->paths = strdup(paths);
    shelf->stamps = calloc(n, sizeof(*shelf->stamps));
    shelf->set.pages = calloc(n, sizeof(*shelf->set.pages));
    shelf->set.shelf = shelf;
    if (shelf->paths && shelf->stamps && shelf->set.pages)
        return shelf;
    shelf_free(shelf);
    return NULL;
}

/* Call each() for every path; returns the first status that is not COLL_OK. */
static int for_each(struct coll__shelf *shelf,
                    int (*each)(struct coll__shelf *shelf, size_t i,
                                const char *path))
{
    char *copy = strdup(shelf->paths), *rest = copy, *path;
    int rc = copy ? COLL_OK : COLL_ERR_NOMEM;

    for (size_t i = 0; rc == COLL_OK && (path = strsep(&rest, ":")); i++)
        if (*path)
            rc = each(shelf, i, path);
    free(copy);
    return rc;
}

static int read_page(struct coll__shelf *shelf, size_t i, const char *path)
{
    shelf->stamps[i] = coll__stamp_of(path);
    return add_page(&shelf->set, path);
}

static int compare_stamp(struct coll__shelf *shelf, size_t i, const char *path)
{
    struct coll__stamp now = coll__stamp_of(path);

    return coll__stamp_same(&shelf->stamps[i], &now) ? COLL_OK
                                                     : COLL_IN_PROGRESS;
}

/* Drop one user; the last one frees it.  The lock is held. */
static void put(struct coll__shelf *shelf)
{
    if (shelf && !--shelf->n_users)
        shelf_free(shelf);
}

/* Take `latest` if it is of these paths and the files have not changed; returns 1, or
 * 0. */
static int take_latest(struct coll__plan_set *set, const char *paths)
{
    int is_right;

    coll__lock(&lock);
    is_right = latest && !strcmp(latest->paths, paths) &&
               for_each(latest, compare_stamp) == COLL_OK;
    if (is_right) {
        latest->n_users++;
        *set = latest->set;
    }
    coll__unlock(&lock);
    return is_right;
}

int coll__plan_set_open(struct coll__plan_set *set, const char *paths)
{
    struct coll__shelf *shelf;
    int rc = COLL_ERR_NOMEM;

    *set = (struct coll__plan_set){0};
    if (!*paths || take_latest(set, paths))
        return COLL_OK;
    shelf = shelf_new(paths);
    if (shelf)
        rc = for_each(shelf, read_page);
    if (rc == COLL_ERR_NOMEM)
        log_error("plan", "no memory for the plans of COLL_PLAN_FILE");
    if (rc) {
        shelf_free(shelf);
        return rc;
    }
    coll__lock(&lock);
    put(latest);
    latest = shelf;
    shelf->n_users = 2;
    *set = shelf->set;
    coll__unlock(&lock);
    return COLL_OK;
}

void coll__plan_set_close(struct coll__plan_set *set)
{
    coll__lock(&lock);
    put(set->shelf);
    coll__unlock(&lock);
    *set = (struct coll__plan_set){0};
}

/* ---- look up -------------------------------------------------------------- */

static int serves(const struct coll__problem *page,
                  const struct coll__problem *pb)
{
    int has_root =
        pb->collective == COLL_BROADCAST || pb->collective == COLL_REDUCE ||
        pb->collective == COLL_GATHER || pb->collective == COLL_SCATTER;

    return page->collective == pb->collective && page->nranks == pb->nranks &&
           page->count == pb->count &&
           coll_type_size(page->type) == coll_type_size(pb->type) &&
           (!has_root || page->root == pb->root) &&
           (!coll__reduces(pb->collective) ||
            ((page->op == COLL_AVG) == (pb->op == COLL_AVG) &&
             page->is_user_op == pb->is_user_op && page->order >= pb->order));
}

/* ---- in place or not ------------------------------------------------------ */

/* Copy this rank's input from where pb has it to where the page expects it.  A page
 * that is not in place reads all of IN; it is put together in TMP at `image`. */
static void bring_input(const struct coll__problem *pb, size_t image,
                        struct coll__plan *to)
{
    struct coll__problem other = *pb;
    int is_parts = coll__problem_shape(pb, BUF_IN) == SHAPE_PARTS;

    other.in_place = !pb->in_place;
    for (int q = 0; q < (is_parts ? pb->nranks : 1); q++) {
        int is_own =
            !is_parts || pb->collective == COLL_ALLTOALL || q == pb->rank;
        struct coll__span in =
            is_parts ? coll__part(pb, BUF_IN, q) : coll__whole(pb, BUF_IN);
        struct coll__span own =
            pb->collective == COLL_ALLTOALL ? coll__part(pb, BUF_OUT, q)
            : is_parts                      ? coll__whole(pb, BUF_OUT)
                       : coll__own_in(pb->in_place ? pb : &other);

        if (!pb->in_place && is_own)
            plan_copy(to, own, in);
        else if (pb->in_place)
            plan_copy(to, (struct coll__span){BUF_TMP, image + in.off, in.len},
                      is_own ? own : in);
    }
}

static int fit(const struct coll__plan *page, const struct coll__problem *pb,
               struct coll__plan *plan)
{
    size_t image = (page->tmp_len + 63) / 64 * 64;

    bring_input(pb, image, plan);
    for (int i = 0; i < page->n_steps; i++) {
        struct coll__step step = page->steps[i];

        if (pb->in_place && coll__step_reads_src(step.kind) &&
            step.src.buf == BUF_IN) {
            step.src.buf = BUF_TMP;
            step.src.off += image;
        }
        coll__plan_add(plan, &step);
    }
    return plan->status ? plan->status : coll__plan_link(plan);
}

static int copy_plan(const struct coll__plan *page, struct coll__plan *plan)
{
    size_t n = (size_t)page->n_steps;
    size_t n_edges = (size_t)page->first_after[n];

    for (size_t i = 0; i < n; i++)
        coll__plan_add(plan, &page->steps[i]);
    plan->n_deps = malloc((n + 1) * sizeof(int));
    plan->first_after = malloc((n + 2) * sizeof(int));
    plan->after = malloc((n_edges + 1) * sizeof(int));
    plan->same = malloc((n + 1) * sizeof(int));
    if (plan->status || !plan->n_deps || !plan->first_after || !plan->after ||
        !plan->same) {
        log_error("plan", "no memory for a plan of %zu steps", n);
        return COLL_ERR_NOMEM;
    }
    memcpy(plan->n_deps, page->n_deps, n * sizeof(int));
    memcpy(plan->first_after, page->first_after, (n + 1) * sizeof(int));
    memcpy(plan->after, page->after, n_edges * sizeof(int));
    memcpy(plan->same, page->same, n * sizeof(int));
    plan->tmp_len = page->tmp_len;
    return COLL_OK;
}

int coll__plan_set_find(const struct coll__plan_set *set,
                        const struct coll__problem *pb, struct coll__plan *plan)
{
    const struct coll__plans *page = NULL;
    int rc;

    for (int i = 0; i < set->n_pages && !page; i++)
        if (serves(&set->pages[i].pbs[0], pb))
            page = &set->pages[i];
    if (!page)
        return COLL_ERR_UNSUPPORTED;
    *plan = (struct coll__plan){.algorithm = page->algorithm};
    rc = page->pbs[pb->rank].in_place == pb->in_place
             ? copy_plan(&page->plans[pb->rank], plan)
             : fit(&page->plans[pb->rank], pb, plan);
    if (rc)
        coll__plan_fini(plan);
    return rc;
}
