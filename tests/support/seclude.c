/* SPDX-License-Identifier: BSD-3-Clause */
/* seclude.c - a mount namespace with two empty folders. */
#include "tests/support/seclude.h"
#include "lib/util/util.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static const char *const folders[] = {"/dev/shm", "/tmp"};

int seclude(void)
{
    if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return 0;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (mount("tmpfs", folders[i], "tmpfs", 0, NULL))
            return 0;
    unsetenv("TMPDIR");
    return 1;
}

void secluded_leftover(char *left, size_t len)
{
    *left = '\0';
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        DIR *dir = opendir(folders[i]);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                continue;
            snprintf(left, len, "%s/%s", folders[i], entry->d_name);
            unlink(left);
        }
        if (dir)
            closedir(dir);
    }
}
