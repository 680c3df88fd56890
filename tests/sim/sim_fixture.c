/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_fixture.c - load a machine, put ranks on it, simulate. */
#include "tests/sim/sim_fixture.h"
#include "tests/support/files.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

void machine_init(struct machine *m, const char *file, int nranks, size_t chunk)
{
    ck_assert_msg(coll__fabric_load(fixture_file("topo", file), &m->fabric) ==
                      COLL_OK,
                  "%s", coll_last_error());
    ck_assert_msg(coll__view_of_fabric(&m->view, m->fabric, nranks, PLACE_BLOCK,
                                       chunk) == COLL_OK,
                  "%s", coll_last_error());
}

void machine_fini(struct machine *m)
{
    coll__view_fini(&m->view);
    coll__fabric_destroy(m->fabric);
}

struct coll__problem problem(const struct machine *m,
                             enum coll_collective collective, double bytes)
{
    struct coll__problem pb = {.collective = collective,
                               .type = COLL_F32,
                               .op = COLL_SUM,
                               .nranks = m->view.nranks,
                               .view = &m->view};

    if (collective == COLL_BARRIER) {
        pb.type = COLL_U8;
        pb.op = COLL_MAX;
        bytes = 4;
    }
    pb.count = (size_t)(bytes / 4);
    if (coll__problem_shape(&pb, BUF_IN) == SHAPE_PARTS ||
        coll__problem_shape(&pb, BUF_OUT) == SHAPE_PARTS)
        pb.count = max_size(pb.count / (size_t)pb.nranks, 1);
    return pb;
}

struct coll__sim_result simulate(const struct machine *m,
                                 const struct coll__algo *algo,
                                 const struct coll__problem *pb)
{
    struct coll__sim_result result;

    ck_assert_msg(coll__sim_run(algo, pb, m->fabric, PLACE_BLOCK, &result) ==
                      COLL_OK,
                  "%s", coll_last_error());
    return result;
}
