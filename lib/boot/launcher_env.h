/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_env.h - variables that launchers set, and the secrets of jobs whose launcher
 * gives the ranks none. */
#ifndef COLL_LIB_BOOT_LAUNCHER_ENV_H
#define COLL_LIB_BOOT_LAUNCHER_ENV_H

#include "lib/net/auth.h"

/* The remedy when ranks could not prove to each other that they are of one job. */
#define COLL__WORD_REMEDY                                                      \
    "is it the same job, and COLL_JOB_SECRET the same on every rank?"

/* Return the variable's text, "" if it is not set. */
const char *coll__launcher_env(const char *name);

/* Check a launcher's variables: if the first one is set, all others must be, since some
 * of them alone describe no job.
 *
 * Shapes:    set: the variable that identifies the launcher; needed: the others, NULL at
 *            the end; remedy: the error's text after a semicolon.
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

/* Read the rank and the number of ranks from these two variables.
 *
 * Errors:    COLL_ERR_BOOTSTRAP, logged, with the bounds.
 */
int coll__launcher_env_place(const char *rank_name, const char *size_name,
                             int *rank, int *size);

/* Is COLL_JOB_SECRET or COLL_JOB_SECRET_FILE set? */
int coll__launcher_has_secret(void);

/* Make a secret from these words, which keep jobs apart, and from COLL_JOB_SECRET or the
 * content of COLL_JOB_SECRET_FILE, which keeps strangers out.  If neither is set, a
 * rank with says_so logs it.
 *
 * Errors:    COLL_ERR_INVALID, logged: the file cannot be read, is empty, or other users
 *            may read it.
 */
int coll__launcher_secret(const char *words, const char *launcher, int says_so,
                          unsigned char secret[COLL__SECRET_BYTES]);

#endif
