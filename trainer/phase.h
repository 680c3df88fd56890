/* SPDX-License-Identifier: BSD-3-Clause */
/* phase.h - where the time of a step goes: sums for --breakdown, and rows of
 * the same names in COLL_TIMELINE's picture. */
#ifndef COLL_TRAINER_PHASE_H
#define COLL_TRAINER_PHASE_H

enum phase {
    PHASE_DATA,
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_OPTIMIZER,
    N_PHASES
};

struct phases {
    double seconds[N_PHASES];
};

/* Return the time, for phase_end(): seconds of the monotonic clock. */
double phase_begin(void);

/* Note a phase that began at that time and ends now. */
void phase_end(struct phases *p, enum phase phase, double begin);

/* Return "FORWARD". */
const char *phase_name(enum phase phase);

#endif
