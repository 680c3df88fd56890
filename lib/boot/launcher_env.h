/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_env.h - variables that launchers set, and what the ranks of a job prove to each
 * other where their launcher gives them no secret. */
#ifndef COLL_LIB_BOOT_LAUNCHER_ENV_H
#define COLL_LIB_BOOT_LAUNCHER_ENV_H

#include "lib/net/auth.h"

/* What follows where ranks could not prove to each other that they are of one job. */
#define COLL__WORD_REMEDY                                                      \
    "is it the same job, and COLL_JOB_SECRET the same on every rank?"

/* The variable's text, "" when it is not set. */
const char *coll__launcher_env(const char *name);

/* Judge a launcher's variables: with the first one that is set all others must be,
 * since a part of them describes no job.
 *
 * Shapes:    set: the variable that tells the launcher, maybe not set; needed: the
 *            others, NULL at the end; remedy: what follows a semicolon.
 * Result:    1: all are set; 0: `set` is not.
 * Errors:    COLL_ERR_BOOTSTRAP, logged, with the first that is missing.
 */
int coll__launcher_env_has_all(const char *set, const char *const needed[],
                               const char *remedy);

/* Read a variable as a number.
 *
 * Errors:    COLL_ERR_BOOTSTRAP, logged, with the bounds.
 */
int coll__launcher_env_number(const char *name, long least, long most,
                              long *value);

/* Read which of how many ranks this is, from the variables of these names.
 *
 * Errors:    COLL_ERR_BOOTSTRAP, logged, with the bounds.
 */
int coll__launcher_env_place(const char *rank_name, const char *size_name,
                             int *rank, int *size);

/* Is COLL_JOB_SECRET set, or COLL_JOB_SECRET_FILE? */
int coll__launcher_has_secret(void);

/* Make a secret of these words, which keep jobs apart, and of COLL_JOB_SECRET or what
 * COLL_JOB_SECRET_FILE holds, which keep strangers out; a rank that is to say so says
 * that there is neither.
 *
 * Errors:    COLL_ERR_INVALID, logged: the file cannot be read, is empty, or others
 *            may read it.
 */
int coll__launcher_secret(const char *words, const char *launcher, int says_so,
                          unsigned char secret[COLL__SECRET_BYTES]);

#endif
