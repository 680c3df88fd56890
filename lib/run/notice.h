/* SPDX-License-Identifier: BSD-3-Clause */
/* notice.h - the descriptor that tells a caller's event loop of operations that ended. */
#ifndef COLL_LIB_RUN_NOTICE_H
#define COLL_LIB_RUN_NOTICE_H

/* Make the process's descriptor, if it has none.  *fd is the library's.  COLL_OK, or
 * COLL_ERR_SYSTEM, logged. */
int coll__notice_fd(int *fd);

/* Tell that one more operation has ended; any thread, after coll__notice_fd(). */
void coll__notice(void);

#endif
