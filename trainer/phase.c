/* SPDX-License-Identifier: BSD-3-Clause */
/* phase.c - each phase reads the clock twice, and is reported to libcoll. */
#include "trainer/phase.h"
#include "coll/coll.h"
#include "trainer/clock.h"

static const char *const names[N_PHASES] = {"DATA", "FORWARD", "BACKWARD",
                                            "OPTIMIZER"};

double phase_begin(void) { return now(); }

void phase_end(struct phases *p, enum phase phase, double begin)
{
    p->seconds[phase] += now() - begin;
    coll_timeline_end(names[phase], names[phase], begin);
}

const char *phase_name(enum phase phase) { return names[phase]; }
