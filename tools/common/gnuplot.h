/* SPDX-License-Identifier: BSD-3-Clause */
/* gnuplot.h - a picture drawn by gnuplot, a child process that reads its script
 * from a pipe. */
#ifndef COLL_TOOLS_COMMON_GNUPLOT_H
#define COLL_TOOLS_COMMON_GNUPLOT_H

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct gnuplot {
    FILE *script; /* the caller writes it, and does not close it */
    pid_t pid;
};

/* Return the terminal that draws a file of that name. */
static inline const char *gnuplot_terminal(const char *path)
{
    size_t n = strlen(path);

    return n > 4 && !strcmp(path + n - 4, ".svg") ? "svg" : "pngcairo";
}

/* Start gnuplot, which draws to the file at path.
 *
 * Result:    0, and the caller ends *g by gnuplot_finish(); or an errno: ENOENT
 *            if there is no gnuplot, or no folder of that name.
 */
static inline int gnuplot_start(struct gnuplot *g, const char *path)
{
    static char name[] = "gnuplot";
    char *argv[] = {name, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], err;

    if (pipe2(ends, O_CLOEXEC))
        return errno;
    g->script = fdopen(ends[1], "w");
    if (!g->script) {
        err = errno;
        close(ends[0]);
        close(ends[1]);
        return err;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    err = posix_spawnp(&g->pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (err)
        fclose(g->script);
    return err;
}

/* End the script and wait for the picture.  Result: 0; or -1, and gnuplot has
 * printed why. */
static inline int gnuplot_finish(struct gnuplot *g)
{
    int how = -1;

    fclose(g->script);
    while (waitpid(g->pid, &how, 0) < 0 && errno == EINTR)
        ;
    return how ? -1 : 0;
}

#endif
