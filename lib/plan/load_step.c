/* SPDX-License-Identifier: BSD-3-Clause */
/* load_step.c - read one step of a plan file, and link the steps of a rank. */
#include "lib/plan/flow.h"
#include "lib/plan/load.h"
#include "lib/plan/words.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- spans ---------------------------------------------------------------- */

/* Read "out[0,16)" from the last word. */
static int parse_span(const struct coll__scan *scan, struct coll__span *span)
{
    const char *at = scan->word, *end = at + scan->word_len;
    size_t from, to;

    for (int b = 0; b < N_BUFS; b++) {
        size_t len = strlen(coll__buf_names[b]);

        if (scan->word_len <= len || memcmp(at, coll__buf_names[b], len) ||
            at[len] != '[')
            continue;
        at += len + 1;
        if (coll__scan_digits(&at, end, &from) || at == end || *at++ != ',' ||
            coll__scan_digits(&at, end, &to) || end - at != 1 || *at != ')' ||
            to < from)
            return -1;
        *span = (struct coll__span){(enum coll__buf)b, from, to - from};
        return 0;
    }
    return -1;
}

static int read_span(struct coll__loader *l, const char *what,
                     struct coll__span *span)
{
    size_t size = coll_type_size(l->head.type);

    if (!coll__scan_word(&l->scan))
        return coll__scan_fault(&l->scan, "%s: a span such as out[0,16) is "
                                "missing", what);
    if (parse_span(&l->scan, span))
        return coll__scan_fault(&l->scan, "%s: '%.*s' is no span such as "
                                "in[0,16), out[0,16) or tmp[0,16)", what,
                                (int)min_size(l->scan.word_len, 48),
                                l->scan.word);
    if (span->len && span->off + span->len > l->len[span->buf])
        return coll__scan_fault(&l->scan, "%s: %.*s ends behind rank %d's %s, "
                                "which has %zu bytes", what,
                                (int)min_size(l->scan.word_len, 48),
                                l->scan.word, l->rank,
                                coll__buf_names[span->buf], l->len[span->buf]);
    if (coll__reduces(l->head.collective) &&
        (span->off % size || span->len % size))
        return coll__scan_fault(&l->scan, "%s: %.*s does not hold whole "
                                "elements of %zu bytes", what,
                                (int)min_size(l->scan.word_len, 48),
                                l->scan.word, size);
    return COLL_OK;
}

static int overlap(const struct coll__span *a, const struct coll__span *b)
{
    return a->len && b->len && coll__spans_overlap(a, b);
}

/* Read the two spans of a copy, a reduce or an order. */
static int judge_both(struct coll__loader *l, const struct coll__step *step)
{
    if (step->src.len != step->dst.len)
        return coll__scan_fault(&l->scan,
                                "source and destination have %zu "
                                "and %zu bytes",
                                step->src.len, step->dst.len);
    if (overlap(&step->src, &step->dst) &&
        !(step->kind == STEP_RECV_REDUCE &&
          coll__same_span(&step->src, &step->dst)))
        return coll__scan_fault(&l->scan, "source and destination overlap");
    return COLL_OK;
}

static int read_spans(struct coll__loader *l, struct coll__step *step)
{
    int writes = coll__step_writes_dst(step->kind), rc = COLL_OK;

    if (writes)
        rc = read_span(l, "destination", &step->dst);
    if (rc == COLL_OK && writes && step->dst.buf == BUF_IN)
        return coll__scan_fault(&l->scan, "destination: IN is read only");
    if (step->kind == STEP_RECV_REDUCE)
        step->src = step->dst; /* unless "with" follows */
    if (rc || step->kind == STEP_RECV_REDUCE ||
        !coll__step_reads_src(step->kind))
        return rc;
    if (writes && (!coll__scan_word(&l->scan) ||
                   !coll__scan_is(&l->scan, "from")))
        return coll__scan_fault(&l->scan, "'from' and the source are missing");
    rc = read_span(l, "source", &step->src);
    if (rc || !writes || step->kind == STEP_ORDER)
        return rc;
    return judge_both(l, step);
}

/* Read the operand of a recv_reduce, after "with". */
static int read_operand(struct coll__loader *l, struct coll__step *step)
{
    int rc = read_span(l, "with", &step->src);

    return rc ? rc : judge_both(l, step);
}

/* ---- a step --------------------------------------------------------------- */

static int add_edge(struct coll__loader *l, int from, int to)
{
    if (l->n_edges == l->cap_edges) {
        int cap = l->cap_edges ? 2 * l->cap_edges : 64;
        struct coll__loaded_edge *more =
            realloc(l->edges, (size_t)cap * sizeof(*more));

        if (!more) {
            log_error("plan", "%s: no memory for its edges", l->scan.name);
            return COLL_ERR_NOMEM;
        }
        l->edges = more;
        l->cap_edges = cap;
    }
    l->edges[l->n_edges++] = (struct coll__loaded_edge){from, to};
    return COLL_OK;
}

/* Read "for 0 2 5", after "waits". */
static int read_waits(struct coll__loader *l, int step)
{
    int first = l->n_edges, from, rc = COLL_OK;

    if (!l->plans->has_edges)
        return coll__scan_fault(&l->scan, "waits: the head does not say "
                                "'edges listed'");
    if (!coll__scan_word(&l->scan) || !coll__scan_is(&l->scan, "for"))
        return coll__scan_fault(&l->scan, "waits: 'for' must follow");
    if (!step)
        return coll__scan_fault(&l->scan, "waits: there is no step before "
                                "step 0");
    while (rc == COLL_OK) {
        rc = coll__scan_int(&l->scan, "waits for", 0, step - 1, &from);
        if (rc == COLL_OK && l->n_edges > first &&
            from <= l->edges[l->n_edges - 1].from)
            return coll__scan_fault(&l->scan, "waits for %d: steps must be in "
                                    "ascending order", from);
        if (rc == COLL_OK)
            rc = add_edge(l, from, step);
        while (l->scan.at < l->scan.line_end && *l->scan.at == ' ')
            l->scan.at++;
        if (l->scan.at == l->scan.line_end)
            break;
    }
    return rc;
}

static int read_peer(struct coll__loader *l, struct coll__step *step)
{
    int rc;

    if (!coll__step_is_message(step->kind))
        return COLL_OK;
    if (!coll__scan_word(&l->scan) || !coll__scan_is(&l->scan, "peer"))
        return coll__scan_fault(&l->scan, "%s: 'peer' must follow",
                                coll__step_name(step->kind));
    rc = coll__scan_int(&l->scan, "peer", 0, l->head.nranks - 1, &step->peer);
    if (rc == COLL_OK && step->peer == l->rank)
        return coll__scan_fault(&l->scan, "peer %d is this rank itself; use "
                                "copy or reduce", step->peer);
    return rc;
}

static int read_kind(struct coll__loader *l, struct coll__step *step)
{
    const char *names[N_STEP_KINDS];
    int kind = 0, rc;

    for (int k = 0; k < N_STEP_KINDS; k++)
        names[k] = coll__step_name((enum coll__step_kind)k);
    rc = coll__scan_name(&l->scan, "step", names, N_STEP_KINDS, &kind);
    step->kind = (enum coll__step_kind)kind;
    if (rc == COLL_OK && step->kind == STEP_RECV_REDUCE && l->head.is_user_op)
        return coll__scan_fault(&l->scan, "recv_reduce: a user's operation "
                                "needs recv and reduce apart");
    return rc;
}

/* Read the words that may follow the spans. */
static int read_rest(struct coll__loader *l, struct coll__step *step, int i)
{
    int is_reduction = step->kind == STEP_REDUCE ||
                       step->kind == STEP_RECV_REDUCE;

    int rc;

    if (!coll__scan_word(&l->scan))
        return COLL_OK;
    if (step->kind == STEP_RECV_REDUCE && coll__scan_is(&l->scan, "with")) {
        rc = read_operand(l, step);
        if (rc || !coll__scan_word(&l->scan))
            return rc;
    }
    if (is_reduction && coll__scan_is(&l->scan, "left")) {
        step->src_first = 1;
        if (!coll__scan_word(&l->scan))
            return COLL_OK;
    }
    if (coll__scan_is(&l->scan, "waits"))
        return read_waits(l, i);
    return coll__scan_fault(&l->scan, "'%.*s' is not expected here",
                            (int)min_size(l->scan.word_len, 24), l->scan.word);
}

int coll__load_step(struct coll__loader *l)
{
    struct coll__plan *plan = &l->plans->plans[l->rank];
    struct coll__step step = {.peer = -1};
    const char *at = l->scan.word;
    size_t number;
    int rc;

    if (coll__scan_digits(&at, l->scan.word + l->scan.word_len, &number) ||
        at != l->scan.word + l->scan.word_len)
        return coll__scan_fault(&l->scan, "'%.*s' is neither a step's number "
                                "nor 'rank'",
                                (int)min_size(l->scan.word_len, 24),
                                l->scan.word);
    if (number != (size_t)plan->n_steps)
        return coll__scan_fault(&l->scan, "step %zu stands where step %d must",
                                number, plan->n_steps);
    rc = read_kind(l, &step);
    if (rc == COLL_OK)
        rc = read_peer(l, &step);
    if (rc == COLL_OK)
        rc = read_spans(l, &step);
    if (rc == COLL_OK)
        rc = read_rest(l, &step, plan->n_steps);
    if (rc == COLL_OK)
        coll__plan_add(plan, &step);
    return rc ? rc : plan->status;
}

/* ---- edges ---------------------------------------------------------------- */

/* Limit the number of segments that the spans cut each other into, since the cost of
 * linking grows with it.  Plans whose spans are blocks stay far below the limit. */
static int check_tangle(const struct coll__loader *l,
                        const struct coll__plan *plan,
                        const struct coll__flow *flow)
{
    size_t limit = ((size_t)1 << 18) +
                   4 * (size_t)l->head.nranks * (size_t)plan->n_steps, n = 0;

    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__touch *touch = &flow->touches[i];

        n += (size_t)(touch->src.to - touch->src.from) +
             (size_t)(touch->dst.to - touch->dst.from);
    }
    return n <= limit ? COLL_OK
                      : coll__scan_fault(&l->scan, "the spans of rank %d cut "
                                         "each other into too many parts; cut "
                                         "them alike", l->rank);
}

/* Sort the listed edges by their first step and put them in place of the inferred
 * ones. */
static int store_edges(const struct coll__loader *l, struct coll__plan *plan)
{
    size_t n = (size_t)plan->n_steps;

    free(plan->n_deps);
    free(plan->first_after);
    free(plan->after);
    plan->n_deps = calloc(n + 1, sizeof(int));
    plan->first_after = calloc(n + 2, sizeof(int));
    plan->after = malloc(((size_t)l->n_edges + 1) * sizeof(int));
    if (!plan->n_deps || !plan->first_after || !plan->after) {
        log_error("plan", "%s: no memory for its edges", l->scan.name);
        return COLL_ERR_NOMEM;
    }
    for (int e = 0; e < l->n_edges; e++) {
        plan->n_deps[l->edges[e].to]++;
        plan->first_after[l->edges[e].from + 2]++;
    }
    for (size_t i = 1; i <= n; i++)
        plan->first_after[i + 1] += plan->first_after[i];
    for (int e = 0; e < l->n_edges; e++)
        plan->after[plan->first_after[l->edges[e].from + 1]++] = l->edges[e].to;
    return COLL_OK;
}

int coll__load_edges(struct coll__loader *l)
{
    struct coll__plan *plan = &l->plans->plans[l->rank];
    struct coll__flow flow = {0};
    int rc = coll__flow_need(&flow, plan);

    if (rc == COLL_OK)
        rc = check_tangle(l, plan, &flow);
    if (rc == COLL_OK) /* it also finds the sends that carry the same bytes */
        rc = coll__flow_link(&flow, plan);
    coll__flow_fini(&flow);
    return rc || !l->plans->has_edges ? rc : store_edges(l, plan);
}
