/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_fixture.h - machines of tests/topo with ranks on them, for the tests of
 * prices. */
#ifndef COLL_TESTS_SIM_FIXTURE_H
#define COLL_TESTS_SIM_FIXTURE_H

#include "tools/sim/sim.h"

#define DEFAULT_CHUNK ((size_t)128 << 10)

/* A machine with its ranks. */
struct machine {
    struct coll__fabric *fabric;
    struct coll__view view;
};

/* file: a name in tests/topo; every ck_assert ends the test. */
void machine_init(struct machine *m, const char *file, int nranks,
                  size_t chunk);
void machine_fini(struct machine *m);

/* A problem of about that many bytes on each rank, in all parts together. */
struct coll__problem problem(const struct machine *m,
                             enum coll_collective collective, double bytes);

/* Run it on the machine. */
struct coll__sim_result simulate(const struct machine *m,
                                 const struct coll__algo *algo,
                                 const struct coll__problem *pb);

#endif
