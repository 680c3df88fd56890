/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn.h - threads of the library's own. */
#ifndef COLL_LIB_UTIL_SPAWN_H
#define COLL_LIB_UTIL_SPAWN_H

#include <pthread.h>

/* Start a thread that handles none of the application's signals.
 *
 * Shapes:    name: as tools show it, up to 15 bytes.
 * Result:    0 and *thread, the caller's to join; or an errno.
 * Threads:   any.
 */
int coll__spawn(pthread_t *thread, void *(*run)(void *), void *arg,
                const char *name);

#endif
