/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_cache.c - the machine that COLL_TOPO_FILE describes.
 *
 * Each communicator asks where its process is on that machine and how far apart its parts
 * are.  Reading the file is slow, since it takes a child process.  So the result is kept
 * until the name or the contents of the file change.
 */
#include "lib/topo/machine.h"
#include "lib/util/lock.h"
#include "lib/util/files.h"

#include <stdlib.h>
#include <string.h>

/* The lock protects these; it is not held while a file is read, since that forks. */
static struct {
    char *file; /* NULL: none */
    struct coll__stamp stamp;
    struct coll__hwloc *hwloc;
} kept;
static struct coll__lock lock = COLL__LOCK(NULL);

static int is_kept(const char *file, const struct coll__stamp *stamp)
{
    return kept.file && !strcmp(kept.file, file) &&
           coll__stamp_same(&kept.stamp, stamp);
}

/* Keep this description and free the one before.  Without memory for its name no later
 * call finds it. */
static void keep(const char *file, const struct coll__stamp *stamp,
                 struct coll__hwloc *hwloc)
{
    free(kept.file);
    coll__hwloc_free(kept.hwloc);
    kept.file = strdup(file);
    kept.stamp = *stamp;
    kept.hwloc = hwloc;
}

int coll__kept_ask(const char *file,
                   int (*ask)(const struct coll__hwloc *hwloc, void *arg),
                   void *arg)
{
    struct coll__stamp stamp = coll__stamp_of(file);
    struct coll__hwloc *fresh = NULL;
    int status = COLL_OK, is_there;

    coll__lock(&lock);
    is_there = is_kept(file, &stamp);
    if (is_there)
        status = ask(kept.hwloc, arg);
    coll__unlock(&lock);
    if (is_there)
        return status;
    status = coll__hwloc_open(file, &fresh);
    if (status)
        return status;
    coll__lock(&lock);
    keep(file, &stamp, fresh);
    status = ask(fresh, arg);
    coll__unlock(&lock);
    return status;
}
