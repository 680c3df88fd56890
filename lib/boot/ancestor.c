/* SPDX-License-Identifier: BSD-3-Clause */
/* ancestor.c - find the launcher's process, for launchers that give ranks variables and
 * no connection.
 *
 * The user's programs (a shell, a wrapper) may stand between the launcher and this rank.
 * They began with the rank's variables, as this process did; the launcher did not.  So
 * the launcher is the nearest ancestor without them.  A process whose environment may not
 * be read belongs to another user, so it is none of those programs.  A pidfd of the
 * launcher becomes readable when it ends, however it ends.
 */
#include "lib/boot/ancestor.h"
#include "lib/boot/launcher.h"
#include "lib/trace/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int coll__parent_of(int pid)
{
    char path[32], text[512] = "", *end;
    int parent = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    end = strrchr(text, ')'); /* ends the name, which may hold any character */
    return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

int coll__began_with(int pid, const char *variable)
{
    size_t len = strlen(variable), room = 0;
    char path[32], *item = NULL;
    int found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    file = fopen(path, "re");
    while (file && !found && getdelim(&item, &room, '\0', file) > 0)
        found = !strncmp(item, variable, len) && item[len] == '=';
    if (file)
        fclose(file);
    free(item);
    return found;
}

/* Find the launcher; never process 1, every process's ancestor, which ends with all. */
static int find(const char *variable)
{
    int pid = getppid();

    for (int i = 0; i < COLL__MOST_ANCESTORS && pid > 1; i++) {
        if (!coll__began_with(pid, variable))
            return pid;
        pid = coll__parent_of(pid);
    }
    return 0;
}

void coll__launcher_find(const char *variable)
{
    static char why[160];
    int pid = find(variable), fd = -1;

    if (pid)
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        log_debug("boot", "nobody is seen who set %s", variable);
        return;
    }
    snprintf(why, sizeof(why),
             "the launcher has gone (process %d, which gave this one %s, has "
             "ended): nobody is left to end this job",
             pid, variable);
    coll__launcher_is(fd, why);
}
