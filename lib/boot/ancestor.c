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

#include <ctype.h>
#include <dirent.h>
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

/* Did that process start with this text, and then `end`, in its environment? */
static int began_with(int pid, const char *text, char end)
{
    size_t len = strlen(text), capacity = 0;
    char path[32], *item = NULL;
    int found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    file = fopen(path, "re");
    while (file && !found && getdelim(&item, &capacity, '\0', file) > 0)
        found = !strncmp(item, text, len) && item[len] == end;
    if (file)
        fclose(file);
    free(item);
    return found;
}

int coll__began_with(int pid, const char *variable)
{
    return began_with(pid, variable, '=');
}

int coll__any_began_with(const char *item)
{
    DIR *processes = opendir("/proc");
    struct dirent *at;
    int found = 0;

    while (processes && !found && (at = readdir(processes)))
        found = isdigit((unsigned char)at->d_name[0]) &&
                began_with((int)strtol(at->d_name, NULL, 10), item, '\0');
    if (processes)
        closedir(processes);
    return found;
}

int coll__is_ancestor(int pid)
{
    int at = getpid();

    for (int i = 0; i < COLL__MOST_ANCESTORS && at > 0 && at != pid; i++)
        at = coll__parent_of(at);
    return at == pid && pid > 0;
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
