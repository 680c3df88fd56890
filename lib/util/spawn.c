/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn.c - threads of the library's own. */
#include "lib/util/spawn.h"

#include <signal.h>

int coll__spawn(pthread_t *thread, void *(*run)(void *), void *arg,
                const char *name)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!rc)
        pthread_setname_np(*thread, name);
    return rc;
}
