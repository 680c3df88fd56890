/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_link.h - the key of the words between the collruns of two hosts. */
#ifndef COLL_TOOLS_COLLRUN_LINK_H
#define COLL_TOOLS_COLLRUN_LINK_H

#include "lib/net/words.h"

/* Derive the job's key from the run's name and from the secret in COLL_JOB_SECRET or in
 * the file COLL_JOB_SECRET_FILE.
 *
 * Result:    1: there is a secret; 0: there is none; -1: it cannot be read, which was
 *            reported.
 */
int link_key(const char *run_id, unsigned char key[COLL__SECRET_BYTES]);

/* Wait for the next word until `deadline` (s, of CLOCK_MONOTONIC); 1 or -1. */
int link_await(struct coll__words *words, double deadline,
               char word[COLL__WORD]);

#endif
