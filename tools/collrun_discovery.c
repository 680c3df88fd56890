/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_discovery.c - ask a script which hosts there are. */
#include "tools/collrun_discovery.h"
#include "tools/collrun_hosts.h"
#include "tools/collrun_nodes.h"
#include "tools/collrun_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERIOD 1.0    /* s, from the script's end to its next start */
#define PATIENCE 30.0 /* s, until a script that does not end is killed */
#define MOST 65536    /* bytes that it may print */

struct discovery {
    char path[PATH_MAX];
    pid_t pid; /* 0: it does not run */
    int fd, has_ended, how;
    double next, deadline;
    char text[MOST], last[MOST]; /* printed now, and the time before */
    int has_last;
    size_t len;
    int has_complained; /* since the last good list */
};

struct discovery *discovery_open(const char *script)
{
    struct discovery *d = calloc(1, sizeof(*d));
    struct stat st;
    const char *why = NULL;

    if (!d) {
        complain("out of memory");
        return NULL;
    }
    d->fd = -1;
    snprintf(d->path, sizeof(d->path), "%s%s", strchr(script, '/') ? "" : "./",
             script);
    if (stat(d->path, &st))
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "it is no file";
    else if (access(d->path, X_OK))
        why = "it is not executable; chmod +x it";
    if (!why)
        return d;
    complain("--host-discovery-script %s: %s", script, why);
    free(d);
    return NULL;
}

int discovery_fd(const struct discovery *d) { return d->fd; }

double discovery_next(const struct discovery *d)
{
    if (d->pid)
        return d->has_ended ? now() : d->deadline;
    return d->next;
}

static void start(struct discovery *d)
{
    int ends[2];

    d->next = now() + PERIOD;
    if (pipe2(ends, O_CLOEXEC))
        return; /* the next time may be luckier */
    d->pid = fork();
    if (!d->pid) {
        dup2(ends[1], STDOUT_FILENO);
        tree_leave();
        execlp(d->path, d->path, (char *)NULL); /* also a script without #! */
        complain("cannot run %s: %s", d->path, strerror(errno));
        _exit(EXIT_CANNOT_RUN);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    d->fd = ends[0];
    d->len = 0;
    d->has_ended = 0;
    d->deadline = now() + PATIENCE;
    if (d->pid > 0)
        tree_spare(d->pid);
    else
        d->pid = 0;
}

void discovery_take_end(struct discovery *d, pid_t pid, int how)
{
    if (pid != d->pid)
        return;
    d->has_ended = 1;
    d->how = how;
}

void discovery_close(struct discovery *d)
{
    if (!d)
        return;
    if (d->pid && !d->has_ended) {
        kill(-d->pid, SIGKILL);
        kill(d->pid, SIGKILL);
        tree_reap(d->pid, NULL, 0);
    }
    if (d->fd >= 0)
        close(d->fd);
    free(d);
}

/* Read what has come; when the script has ended, that is all. */
static void read_text(struct discovery *d)
{
    ssize_t n = 1;

    while (d->fd >= 0 && n > 0 && d->len < MOST - 1) {
        n = read(d->fd, d->text + d->len, MOST - 1 - d->len);
        d->len += n > 0 ? (size_t)n : 0;
    }
    d->text[d->len] = '\0';
    if (d->fd >= 0 && (!n || d->has_ended)) {
        close(d->fd);
        d->fd = -1;
    }
}

/* Say once what is wrong with the script. */
static void blame(struct discovery *d, const char *what, int n)
{
    char text[128];

    snprintf(text, sizeof(text), what, n);
    if (!d->has_complained)
        complain("--host-discovery-script %s: %s", d->path, text);
    d->has_complained = 1;
}

/* Make a list of what the script has printed: NULL if that is none. */
static struct hosts *parse(struct discovery *d, const struct options *options)
{
    FILE *file = d->len ? fmemopen(d->text, d->len, "r") : NULL;
    struct hosts *hosts = calloc(1, sizeof(*hosts));
    int line = 0;

    if (hosts && file)
        line = hosts_read_lines(file, hosts, options);
    if (file)
        fclose(file);
    if (hosts && !line)
        return hosts;
    if (!hosts)
        return NULL;
    blame(d, "line %d of what it prints is not HOST or HOST:SLOTS", line);
    hosts_fini(hosts);
    free(hosts);
    return NULL;
}

/* The script has ended: judge what it has printed. */
static struct hosts *finish(struct discovery *d, const struct options *options)
{
    d->pid = 0;
    d->next = now() + PERIOD;
    if (d->how) {
        blame(d,
              WIFSIGNALED(d->how) ? "it was killed by signal %d"
                                  : "it exited with status %d",
              WIFSIGNALED(d->how) ? WTERMSIG(d->how) : WEXITSTATUS(d->how));
        return NULL;
    }
    if (d->has_last && !strcmp(d->text, d->last))
        return NULL;
    strcpy(d->last, d->text);
    d->has_last = 1;
    return parse(d, options);
}

struct hosts *discovery_look(struct discovery *d, const struct options *options)
{
    struct hosts *hosts;

    if (!d->pid && now() >= d->next)
        start(d);
    read_text(d);
    if (d->pid && !d->has_ended && now() >= d->deadline) {
        blame(d, "it did not end within %d s", (int)PATIENCE);
        kill(-d->pid, SIGKILL);
        d->deadline = now() + PATIENCE;
    }
    if (!d->pid || !d->has_ended)
        return NULL;
    hosts = finish(d, options);
    d->has_complained &= !hosts;
    return hosts;
}

/* ---- before the job ---------------------------------------------------------- */

/* Wait for the script's end, or for its next start. */
static struct hosts *await_list(struct discovery *d,
                                const struct options *options)
{
    struct pollfd pfd = {.fd = d->fd, .events = POLLIN};
    pid_t pid;
    int how;

    poll(&pfd, d->fd >= 0, 100);
    pid = d->pid ? tree_reap(d->pid, &how, WNOHANG) : 0;
    if (pid > 0)
        discovery_take_end(d, pid, how);
    return discovery_look(d, options);
}

static int count(const struct hosts *hosts)
{
    int n = 0;

    for (int i = 0; i < hosts->n_hosts; i++)
        n += hosts->host[i].n;
    return n;
}

int discovery_begin(struct discovery *d, const struct options *options,
                    struct hosts *hosts)
{
    int need = options->n ? options->n : options->min_np, n = 0;
    double seconds = nodes_patience(), deadline = now() + seconds;
    struct hosts *found;

    for (;;) {
        found = await_list(d, options);
        n = found ? count(found) : n;
        if (found && n >= need)
            break;
        if (d->has_complained)
            return EXIT_FAILURE;
        if (found)
            complain("%s names hosts for %d of %d ranks; more are waited for",
                     d->path, n, need);
        if (found)
            hosts_fini(found);
        free(found);
        if (now() >= deadline) {
            complain("--host-discovery-script %s: %s for %d of %d ranks within "
                     "%g s (COLL_TIMEOUT)",
                     d->path, n ? "it named hosts only" : "it named no hosts",
                     n, need, seconds);
            return EXIT_FAILURE;
        }
    }
    *hosts = *found;
    free(found);
    return hosts_cut(hosts, options) ? EXIT_USAGE : 0;
}
