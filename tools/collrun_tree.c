/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_tree.c - all processes of a job, found by a variable that they inherit.
 *
 * Ranks stay in collrun's process group, so that they may use its terminal.  So the job
 * has no process group of its own, and a background process of a rank is no child of the
 * rank after the rank has ended.  But each process of the job has inherited the variable
 * COLLRUN_JOB, and /proc shows it.
 *
 * A process that clears its environment has no mark.  So collrun adopts the processes
 * whose parents have ended (PR_SET_CHILD_SUBREAPER), and all of its descendants without
 * that variable belong to the job, too.  If collrun is killed, such processes stay.
 */
#include "tools/collrun_tree.h"

#include "lib/net/auth.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE 65536 /* bytes of an environment that are read at a time */
#define ROUNDS 200  /* rounds of killing: a killed process takes a moment to end */
#define MOST_LEVELS 64 /* generations of processes */
#define LOOKS 50       /* at a process that shows no environment, */
#define MOST_BETWEEN 10 /* of these while it is not in execve() */

static pid_t
    adopter; /* the process whose descendants belong to the job; 0: none */

/* Its children that do not, nor what they have started. */
static struct {
    pid_t *pids; /* never freed: as many as live at a time */
    size_t n;
} spared;

void tree_draw(char mark[TREE_MARK])
{
    unsigned char bytes[(TREE_MARK - 1) / 2];

    coll__auth_random(bytes, sizeof(bytes));
    coll__auth_hex(bytes, sizeof(bytes), mark);
}

/* Read a file of /proc/PID: *len bytes, and a zero.  NULL if it is another user's, or a
 * zombie's. */
static char *read_text(long pid, const char *name, size_t *len)
{
    char path[64], *text = NULL, *more;
    ssize_t n = 1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    for (*len = 0; fd >= 0 && n > 0; *len += (size_t)(n > 0 ? n : 0)) {
        more = realloc(text, *len + PIECE + 1);
        if (!more)
            break;
        text = more;
        n = read(fd, text + *len, PIECE);
    }
    if (fd >= 0)
        close(fd);
    if (text)
        text[*len] = '\0';
    return text;
}

/* Return the value of a variable; NULL if it is not set. */
static const char *value_of(const char *environment, size_t len,
                            const char *name)
{
    size_t n = strlen(name);

    for (const char *at = environment; at && at < environment + len;
         at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    return NULL;
}

/* Read a process's parent; 0 if it has ended. */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[512], state, *end;
    int parent = 0, fd;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    end = strrchr(text, ')'); /* ends the name, which may hold any character */
    if (!end || sscanf(end, ") %c %d", &state, &parent) != 2 || state == 'Z')
        return 0;
    return parent;
}

void tree_adopt(void)
{
    /* Before exec, this process may have had children that are not the job's. */
    adopter = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD &&
                      !prctl(PR_SET_CHILD_SUBREAPER, 1)
                  ? getpid()
                  : 0;
}

void tree_spare(pid_t pid)
{
    pid_t *pids = realloc(spared.pids, (spared.n + 1) * sizeof(*pids));

    if (!pids)
        return; /* it may be ended with the job */
    spared.pids = pids;
    pids[spared.n++] = pid;
}

/* Return where the child is among those that are spared; spared.n: nowhere. */
static size_t find_spared(pid_t pid)
{
    size_t i = 0;

    while (i < spared.n && spared.pids[i] != pid)
        i++;
    return i;
}

pid_t tree_reap(pid_t pid, int *how, int options)
{
    pid_t reaped = waitpid(pid, how, options);
    size_t at = reaped > 0 ? find_spared(reaped) : spared.n;

    if (at < spared.n) /* its number may be another's now */
        spared.pids[at] = spared.pids[--spared.n];
    return reaped;
}

void tree_leave(void)
{
    sigset_t none;

    setsid();
    setenv(TREE_VARIABLE, "none", 1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
}

/* Is the process a descendant of the caller, which adopts them? */
static int is_adopted(pid_t pid)
{
    if (adopter != getpid())
        return 0;
    for (int i = 0; i < MOST_LEVELS && pid > 1 && find_spared(pid) == spared.n;
         i++) {
        pid = parent_of(pid);
        if (pid == adopter)
            return 1;
    }
    return 0;
}

/* Call visit(arg, pid, ...) for each process of the job, except the caller. */
static void each(const char *mark,
                 void (*visit)(void *arg, pid_t pid, const char *environment,
                               size_t len),
                 void *arg)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;

    while (processes && (entry = readdir(processes))) {
        long pid = isdigit((unsigned char)entry->d_name[0])
                       ? strtol(entry->d_name, NULL, 10)
                       : 0;
        size_t len = 0;
        char *environment =
            pid > 0 && pid != getpid() ? read_text(pid, "environ", &len) : NULL;
        const char *has = value_of(environment, len, TREE_VARIABLE);

        if (environment && (has ? !strcmp(has, mark) : is_adopted((pid_t)pid)))
            visit(arg, (pid_t)pid, environment, len);
        free(environment);
    }
    if (processes)
        closedir(processes);
}

/* What a visit of tree_signal() does. */
struct sending {
    int signal, n;
};

static void send_it(void *arg, pid_t pid, const char *environment, size_t len)
{
    struct sending *sending = arg;

    (void)environment, (void)len;
    sending->n += !kill(pid, sending->signal);
}

int tree_signal(const char *mark, int signal)
{
    struct sending sending = {.signal = signal};

    each(mark, send_it, &sending);
    return sending.n;
}

/* What a visit of tree_find() does. */
struct finding {
    const char *name;
    int first, n;
    char *found;
};

/* Mark the number that the variable has in this environment. */
static void note(const struct finding *finding, const char *environment,
                 size_t len)
{
    const char *text = value_of(environment, len, finding->name);
    long i = text ? strtol(text, NULL, 10) - finding->first : -1;

    if (i >= 0 && i < finding->n)
        finding->found[i] = 1;
}

/* A process in execve() shows neither arguments nor an environment. */
static int is_in_exec(pid_t pid)
{
    size_t len;

    free(read_text(pid, "cmdline", &len));
    return !len && parent_of(pid); /* 0: it has ended */
}

/* Look again at a process that shows no environment: after an execve() it shows which rank
 * it is.  If it is seen between two of these some times, it has no environment. */
static void find(void *arg, pid_t pid, const char *environment, size_t len)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int n_between = 0;
    char *again = NULL;

    for (int i = 0; i < LOOKS && n_between < MOST_BETWEEN && !len; i++) {
        n_between += !is_in_exec(pid);
        nanosleep(&moment, NULL);
        free(again);
        again = read_text(pid, "environ", &len);
    }
    note(arg, again ? again : environment, len);
    free(again);
}

void tree_find(const char *mark, const char *name, int first, int n,
               char *found)
{
    struct finding finding = {name, first, n, found};

    each(mark, find, &finding);
}

/* What a visit of tree_kill_where() does. */
struct killing {
    const char *name;
    int value, n;
};

static void kill_it(void *arg, pid_t pid, const char *environment, size_t len)
{
    struct killing *killing = arg;
    const char *text = value_of(environment, len, killing->name);

    if (text && strtol(text, NULL, 10) == killing->value)
        killing->n += !kill(pid, SIGKILL);
}

void tree_kill_where(const char *mark, const char *name, int value)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    struct killing killing = {name, value, 1};

    for (int i = 0; i < ROUNDS && killing.n; i++) {
        killing.n = 0;
        each(mark, kill_it, &killing);
        if (killing.n)
            nanosleep(&moment, NULL);
    }
}

void tree_kill(const char *mark)
{
    const struct timespec moment = {.tv_nsec = 5000000};

    for (int i = 0; i < ROUNDS && tree_signal(mark, SIGKILL); i++)
        nanosleep(&moment, NULL);
}
