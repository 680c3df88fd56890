/* SPDX-License-Identifier: BSD-3-Clause */
/* check_params.h - checks the variables of the environment. */
#ifndef COLL_LIB_COMM_CHECK_PARAMS_H
#define COLL_LIB_COMM_CHECK_PARAMS_H

/* Check every COLL_* variable of the environment (check_params.c).
 *
 * Result:    COLL_OK; COLL_ERR_INVALID with a sentence naming the first bad
 *            value.  An unknown COLL_* name is a warning with the nearest one, or with
 *            the limit of the tuning file that has replaced it.
 */
int coll__params_check(void);

#endif
