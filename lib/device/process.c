/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - see process.h.
 *
 * A killed process has SIGKILL pending until it is gone: on the process, or on each of
 * its threads if one of them has brought the process down.  If the host has run out of
 * memory, the process may lose its memory before that.  If only the first thread has
 * ended, the process's state reads as if the process had ended.
 */
#include "lib/device/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return the rest of a line behind its label; NULL if it has another label. */
static const char *value_of(const char *line, const char *label)
{
    size_t len = strlen(label);

    return strncmp(line, label, len) ? NULL : line + len;
}

static int is_killed(const char *signals)
{
    return signals && (strtoull(signals, NULL, 16) >> (SIGKILL - 1) & 1) != 0;
}

/* Find out whether the process is ending, from the lines of /proc/PID/status. */
static int reads_as_ending(FILE *status)
{
    int is_dead = 0, n_threads = 1;
    char line[256];

    while (fgets(line, sizeof(line), status)) {
        const char *state = value_of(line, "State:\t");
        const char *threads = value_of(line, "Threads:\t");

        if (state)
            is_dead = *state == 'Z' || *state == 'X';
        if (threads)
            n_threads = atoi(threads);
        if (is_killed(value_of(line, "SigPnd:\t")) ||
            is_killed(value_of(line, "ShdPnd:\t")))
            return 1;
    }
    return is_dead && n_threads <= 1;
}

int coll__is_ending(int pid)
{
    int err = errno, is_ending;
    char path[64];
    FILE *status;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    status = fopen(path, "re");
    if (status) {
        is_ending = reads_as_ending(status);
        fclose(status);
    } else {
        is_ending = kill(pid, 0) && errno == ESRCH;
    }
    errno = err;
    return is_ending;
}

int coll__other_thread(int pid)
{
    int err = errno, found = 0;
    struct dirent *entry;
    char path[64];
    DIR *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    threads = opendir(path);
    while (threads && !found && (entry = readdir(threads)))
        if (atoi(entry->d_name) != pid) /* 0 of those that are no threads */
            found = atoi(entry->d_name);
    if (threads)
        closedir(threads);
    errno = err;
    return found;
}

static int open_by(int id, int fd, int how)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", id, fd);
    return open(path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int coll__open_file_of(int pid, int fd, int how, const void *name, size_t len)
{
    unsigned char found[64];
    int mine = open_by(pid, fd, how), thread = 0;

    if (mine < 0 && errno != EMFILE && errno != ENFILE)
        thread = coll__other_thread(pid);
    if (thread)
        mine = open_by(thread, fd, how);
    if (mine >= 0 && (pread(mine, found, len, 0) != (ssize_t)len ||
                      memcmp(found, name, len))) {
        close(mine);
        mine = -1;
        errno = ENOENT;
    }
    return mine;
}
