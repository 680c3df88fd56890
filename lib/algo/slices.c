/* SPDX-License-Identifier: BSD-3-Clause */
/* slices.c - slices of a vector that go through the levels of the machine one behind the
 * other: while one is between hosts, the next one is still within its host, and the one
 * before is again.
 *
 * Messages between two ranks pass in the order in which both list them.  Without slices a
 * message on its way back waits for all messages on their way up.
 */
#include "lib/algo/algo.h"
#include "lib/util/util.h"

/* Append the steps of one phase of a slice, which begins at `off`. */
static void add_phase(struct coll__plan *plan, const struct coll__plan *slice,
                      unsigned phase, size_t off, size_t tmp_off)
{
    const struct coll__frame frame = {.in = {BUF_IN, off, 0},
                                      .out = {BUF_OUT, off, 0}};

    for (int i = 0; i < slice->n_steps; i++) {
        struct coll__step step = slice->steps[i];

        if (step.phase != phase)
            continue;
        step.dst = coll__nested_span(&frame, tmp_off, &step.dst);
        step.src = coll__nested_span(&frame, tmp_off, &step.src);
        coll__plan_add(plan, &step);
    }
}

static int build_slice(const struct coll__algo *algo,
                       const struct coll__problem *pb, size_t len,
                       struct coll__plan *slice)
{
    struct coll__problem part = *pb;

    part.count = len / coll_type_size(pb->type);
    return part.count ? algo->build(&part, slice) : COLL_OK;
}

int coll__plan_build_slices(const struct coll__algo *algo,
                            const struct coll__problem *pb, size_t slice,
                            struct coll__plan *plan)
{
    size_t len = coll__problem_bytes(pb), n = len / slice;
    struct coll__plan whole = {.algorithm = algo->name}, rest = whole;
    size_t each;
    int rc = build_slice(algo, pb, n ? slice : 0, &whole);

    if (rc == COLL_OK)
        rc = build_slice(algo, pb, len % slice, &rest);
    each = round_up(whole.tmp_len, CACHE_LINE);
    for (size_t place = 0; place <= n + COLL__PHASES && rc == COLL_OK; place++)
        for (size_t k = place - min_size(place, COLL__PHASES);
             k <= min_size(place, n); k++)
            add_phase(plan, k < n ? &whole : &rest, (unsigned)(place - k),
                      k * slice, k * each);
    coll__plan_fini(&whole);
    coll__plan_fini(&rest);
    return rc ? rc : plan_status(plan);
}
