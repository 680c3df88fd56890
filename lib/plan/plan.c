/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - the steps of a plan, and the buffers of a problem. */
#include "lib/plan/plan.h"
#include "lib/type/signature.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int reads_src, writes_dst;
} kinds[N_STEP_KINDS] = {
#define X(name, text, reads, writes) {text, reads, writes},
    COLL_STEP_MAP(X)
#undef X
};

int coll__step_is_recv(enum coll__step_kind kind)
{
    return kind == STEP_RECV || kind == STEP_RECV_REDUCE;
}

int coll__step_is_message(enum coll__step_kind kind)
{
    return kind == STEP_SEND || coll__step_is_recv(kind);
}

int coll__step_reads_src(enum coll__step_kind kind)
{
    return kinds[kind].reads_src;
}

int coll__step_writes_dst(enum coll__step_kind kind)
{
    return kinds[kind].writes_dst;
}

int coll__step_reads_dst(enum coll__step_kind kind)
{
    return kind == STEP_REDUCE || kind == STEP_SCALE;
}

const char *coll__step_name(enum coll__step_kind kind)
{
    return kinds[kind].name;
}

int coll__reduces(enum coll_collective collective)
{
    return collective == COLL_ALLREDUCE || collective == COLL_REDUCE ||
           collective == COLL_REDUCE_SCATTER ||
           collective == COLL_REDUCE_SCATTERV || coll__is_prefix(collective);
}

int coll__same_numbers(const size_t *a, const size_t *b, int n)
{
    return (!a && !b) || (a && b && !memcmp(a, b, (size_t)n * sizeof(*a)));
}

int coll__same_problem(const struct coll__problem *a,
                       const struct coll__problem *b)
{
    return a->collective == b->collective && a->type == b->type &&
           a->op == b->op && a->root == b->root && a->count == b->count &&
           a->in_place == b->in_place &&
           coll__same_numbers(a->in_counts, b->in_counts, a->nranks) &&
           coll__same_numbers(a->out_counts, b->out_counts, a->nranks) &&
           coll__same_numbers(a->in_displs, b->in_displs, a->nranks) &&
           coll__same_numbers(a->out_displs, b->out_displs, a->nranks);
}

size_t coll__problem_bytes(const struct coll__problem *pb)
{
    return pb->count * coll_type_size(pb->type);
}

static int is_of_parts(enum coll_collective collective)
{
    return collective == COLL_ALLGATHER || collective == COLL_REDUCE_SCATTER ||
           collective == COLL_ALLTOALL || collective == COLL_GATHER ||
           collective == COLL_SCATTER;
}

size_t coll__problem_total(const struct coll__problem *pb)
{
    const size_t *counts = pb->in_counts ? pb->in_counts : pb->out_counts;
    size_t n = 0;

    if (coll__has_own_counts(pb->collective))
        return SIZE_MAX;
    if (!coll__has_counts(pb->collective))
        return coll__problem_bytes(pb) *
               (is_of_parts(pb->collective) ? (size_t)pb->nranks : 1);
    for (int r = 0; r < pb->nranks; r++)
        n += counts[r];
    return n * coll_type_size(pb->type);
}

enum coll__shape coll__problem_shape(const struct coll__problem *pb,
                                     enum coll__buf buf)
{
    int is_root = pb->rank == pb->root, is_out = buf == BUF_OUT;
    enum coll__shape of_root = is_root ? SHAPE_WHOLE : SHAPE_NONE;

    switch (pb->collective) {
    case COLL_ALLREDUCE:
    case COLL_BARRIER:
    case COLL_SCAN:
        return SHAPE_WHOLE;
    case COLL_EXSCAN: /* nothing precedes rank 0 */
        return is_out && !pb->rank ? SHAPE_NONE : SHAPE_WHOLE;
    case COLL_BROADCAST:
        return is_out ? SHAPE_WHOLE : of_root;
    case COLL_REDUCE:
        return is_out ? of_root : SHAPE_WHOLE;
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
        return is_out ? SHAPE_PARTS : SHAPE_WHOLE;
    case COLL_REDUCE_SCATTER:
    case COLL_REDUCE_SCATTERV:
        return is_out ? SHAPE_WHOLE : SHAPE_PARTS;
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
        return SHAPE_PARTS;
    case COLL_GATHER:
    case COLL_GATHERV:
        return !is_out ? SHAPE_WHOLE : is_root ? SHAPE_PARTS : SHAPE_NONE;
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return is_out ? SHAPE_WHOLE : is_root ? SHAPE_PARTS : SHAPE_NONE;
    case COLL_SEND:
    case COLL_SEND_TAGGED:
        return is_out ? SHAPE_NONE : SHAPE_WHOLE;
    case COLL_RECV:
    case COLL_RECV_TAGGED:
        return is_out ? SHAPE_WHOLE : SHAPE_NONE;
    case COLL_N_COLLECTIVES:
        break;
    }
    return SHAPE_NONE;
}

int coll__problem_may_be_in_place(const struct coll__problem *pb)
{
    return pb->collective != COLL_ALLTOALLV && pb->collective != COLL_BARRIER &&
           coll__problem_shape(pb, BUF_IN) != SHAPE_NONE &&
           coll__problem_shape(pb, BUF_OUT) != SHAPE_NONE;
}

/* Are the parts that BUF_TMP mirrors those of IN? */
static int has_parts_in(const struct coll__problem *pb)
{
    return pb->collective == COLL_REDUCE_SCATTER ||
           pb->collective == COLL_REDUCE_SCATTERV ||
           pb->collective == COLL_SCATTER || pb->collective == COLL_SCATTERV ||
           pb->collective == COLL_ALLTOALL || pb->collective == COLL_ALLTOALLV;
}

struct coll__span coll__part(const struct coll__problem *pb, enum coll__buf buf,
                             int r)
{
    int is_in = buf == BUF_TMP ? has_parts_in(pb) : buf == BUF_IN;
    const size_t *counts = is_in ? pb->in_counts : pb->out_counts;
    const size_t *displs = is_in ? pb->in_displs : pb->out_displs;
    size_t size = coll_type_size(pb->type);
    size_t i = (size_t)((r % pb->nranks + pb->nranks) % pb->nranks);

    if (counts)
        return (struct coll__span){buf, displs[i] * size, counts[i] * size};
    return (struct coll__span){buf, i * pb->count * size, pb->count * size};
}

size_t coll__problem_len(const struct coll__problem *pb, enum coll__buf buf)
{
    enum coll__shape shape = coll__problem_shape(pb, buf);
    int is_v = (buf == BUF_IN ? pb->in_counts : pb->out_counts) != NULL;
    size_t len = 0;

    if (shape != SHAPE_PARTS)
        return shape == SHAPE_WHOLE ? coll__problem_bytes(pb) : 0;
    if (!is_v)
        return coll__problem_bytes(pb) * (size_t)pb->nranks;
    for (int r = 0; r < pb->nranks; r++) {
        struct coll__span part = coll__part(pb, buf, r);

        if (part.len)
            len = max_size(len, part.off + part.len);
    }
    return len;
}

void coll__plan_add(struct coll__plan *plan, const struct coll__step *step)
{
    if (plan->status != COLL_OK)
        return;
    if (plan->n_steps == plan->cap_steps) {
        int cap = plan->cap_steps ? 2 * plan->cap_steps : 16;
        struct coll__step *steps =
            realloc(plan->steps, (size_t)cap * sizeof(*steps));

        if (!steps) {
            log_error("plan", "no memory for a plan of %d steps", cap);
            plan->status = COLL_ERR_NOMEM;
            return;
        }
        plan->steps = steps;
        plan->cap_steps = cap;
    }
    plan->steps[plan->n_steps] = *step;
    plan->steps[plan->n_steps++].phase = plan->phase & 0x3fff;
    if (step->dst.buf == BUF_TMP)
        plan->tmp_len = max_size(plan->tmp_len, step->dst.off + step->dst.len);
}

void coll__plan_compact(struct coll__plan *plan)
{
    int kept = 0;

    plan->tmp_len = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];

        if (step->peer == COLL__DROPPED)
            continue;
        if (step->dst.buf == BUF_TMP && coll__step_writes_dst(step->kind))
            plan->tmp_len =
                max_size(plan->tmp_len, step->dst.off + step->dst.len);
        plan->steps[kept++] = *step;
    }
    plan->n_steps = kept;
}

void *coll__plan_alloc(struct coll__plan *plan, int n, size_t size)
{
    void *items = calloc((size_t)n, size);

    if (!items) {
        log_error("plan", "no memory to build a plan: %d items of %zu bytes", n,
                  size);
        plan->status = COLL_ERR_NOMEM;
    }
    return items;
}

int coll__plan_passes_on(const struct coll__plan *plan, int i, int to)
{
    const struct coll__step *next = &plan->steps[to];

    return next->kind == STEP_SEND && next->src.len > 0 &&
           plan->n_deps[to] == 1 &&
           coll__same_span(&next->src, &plan->steps[i].dst);
}

void coll__plan_unlink(struct coll__plan *plan)
{
    free(plan->n_deps);
    free(plan->first_after);
    free(plan->after);
    free(plan->same);
    plan->n_deps = plan->first_after = plan->after = plan->same = NULL;
}

size_t coll__plan_bytes(const struct coll__plan *plan)
{
    size_t n = (size_t)plan->n_steps;
    size_t bytes = (size_t)plan->cap_steps * sizeof(*plan->steps);

    if (plan->first_after) /* a linked plan: three arrays and the edges */
        bytes += (3 * n + 1 + (size_t)plan->first_after[n]) * sizeof(int);
    return bytes;
}

void coll__plan_fini(struct coll__plan *plan)
{
    coll__plan_unlink(plan);
    free(plan->steps);
    *plan = (struct coll__plan){0};
}
