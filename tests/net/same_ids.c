/* SPDX-License-Identifier: BSD-3-Clause */
/* same_ids.c - a library to preload: what hosts that are clones of one snapshot have in
 * common, where the test's hosts are namespaces of one kernel.  The numbers of their
 * namespaces and their names are alike. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

int stat(const char *path, struct stat *st)
{
    int rc = fstatat(AT_FDCWD, path, st, 0);

    if (!rc && !strncmp(path, "/proc/self/ns/", 14))
        st->st_ino = 4026531840u;
    return rc;
}

int gethostname(char *name, size_t len)
{
    snprintf(name, len, "clone");
    return 0;
}
