/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_tree.c - all processes of a job, found by a variable that they inherit.
 *
 * Ranks stay in collrun's process group, so that they may use its terminal.  So the job
 * has no process group of its own, and a background process of a rank is no child of the
 * rank after the rank has ended.  But each process of the job has inherited the variable
 * COLLRUN_JOB, and /proc shows it.  A process that clears its environment gets away.
 */
#include "tools/collrun_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define PIECE 65536 /* bytes of an environment that are read at a time */
#define ROUNDS 200  /* rounds of killing: a killed process takes a moment to end */

int tree_draw(char mark[TREE_MARK])
{
    unsigned char bytes[(TREE_MARK - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(mark + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* Does the file of fd contain the word, with its terminating zero? */
static int has_word(int fd, const char *word)
{
    char text[PIECE + 128];
    size_t len = strlen(word) + 1, kept = 0;
    ssize_t n;

    while ((n = read(fd, text + kept, PIECE)) > 0) {
        size_t have = kept + (size_t)n;

        if (memmem(text, have, word, len))
            return 1;
        kept = have < len - 1 ? have : len - 1; /* a word may be cut here */
        memmove(text, text + have - kept, kept);
    }
    return 0;
}

/* Does the process have the mark?  Not if it is another user's, or a zombie. */
static int is_marked(long pid, const char *mark)
{
    char path[64], word[sizeof(TREE_VARIABLE) + TREE_MARK];
    int fd, found;

    snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    snprintf(word, sizeof(word), TREE_VARIABLE "=%s", mark);
    found = has_word(fd, word);
    close(fd);
    return found;
}

int tree_signal(const char *mark, int signal)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    int n = 0;

    while (processes && (entry = readdir(processes))) {
        long pid = isdigit((unsigned char)entry->d_name[0])
                       ? strtol(entry->d_name, NULL, 10)
                       : 0;

        if (pid > 0 && pid != getpid() && is_marked(pid, mark) &&
            !kill((pid_t)pid, signal))
            n++;
    }
    if (processes)
        closedir(processes);
    return n;
}

void tree_kill(const char *mark)
{
    const struct timespec moment = {.tv_nsec = 5000000};

    for (int i = 0; i < ROUNDS && tree_signal(mark, SIGKILL); i++)
        nanosleep(&moment, NULL);
}
