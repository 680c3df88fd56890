/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h - what load.c and load_step.c share. */
#ifndef COLL_LIB_PLAN_LOAD_H
#define COLL_LIB_PLAN_LOAD_H

#include "lib/plan/all_ranks.h"
#include "lib/plan/scan.h"

struct coll__loaded_edge {
    int from, to; /* `to` waits for `from` */
};

struct coll__loader {
    struct coll__scan scan;
    struct coll__plans *plans;
    struct coll__problem head; /* the fields that all ranks share */
    /* one bit for each field of the head, or of the rank's part, that was read */
    unsigned seen;
    int rank;                  /* the rank whose part is being read; -1 in the head */
    size_t len[N_BUFS];        /* of this rank's buffers, in bytes */
    struct coll__loaded_edge *edges; /* of this rank */
    int n_edges, cap_edges;
};

/* Read the line of a step; its first word is the step's number. */
int coll__load_step(struct coll__loader *loader);

/* Set the edges of this rank's plan. */
int coll__load_edges(struct coll__loader *loader);

#endif
