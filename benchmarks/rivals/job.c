/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - the ranks of one library: started by its launcher, told over one
 * socket each what to measure, and asleep in between.
 *
 * The driver continues even if a rival never starts, dies or hangs: each wait has a
 * deadline and watches all ranks' sockets and the launcher.  A job that failed is ended
 * at once; as the reason, the driver reports what the job wrote first and last.
 */
#include "benchmarks/rivals/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t caught;

double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void path_of(const struct job *job, const char *suffix, char path[256])
{
    snprintf(path, 256, "%s/%s.%s", job->folder, job->form->name, suffix);
}

/* ---- failing ------------------------------------------------------------ */

/* Append as much of the text as fits, each white space as one blank. */
static void append(struct job *job, const char *text, size_t n)
{
    size_t at = strlen(job->why);

    for (size_t i = 0; i < n && at + 1 < sizeof(job->why); i++)
        if ((unsigned char)text[i] > ' ' || job->why[at - 1] != ' ')
            job->why[at++] = (unsigned char)text[i] > ' ' ? text[i] : ' ';
    job->why[at] = '\0';
}

/* Return the beginning and the end of what the job wrote, on one line. */
static void append_log(struct job *job)
{
    enum { HEAD = 90, TAIL = 250 };
    char path[256], text[HEAD + TAIL];
    FILE *file;
    size_t n;
    long all;

    path_of(job, "log", path);
    file = fopen(path, "re");
    if (!file)
        return;
    n = fread(text, 1, sizeof(text), file);
    if (n)
        append(job, ": ", 2);
    all = fseek(file, 0, SEEK_END) ? 0 : ftell(file);
    if (all > (long)n && !fseek(file, -TAIL, SEEK_END)) {
        append(job, text, HEAD);
        append(job, " ... ", 5);
        n = fread(text, 1, TAIL, file);
    }
    while (n && (unsigned char)text[n - 1] <= ' ')
        n--;
    append(job, text, n);
    fclose(file);
}

__attribute__((format(printf, 2, 3))) static int fail(struct job *job,
                                                      const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(job->why, sizeof(job->why), format, list);
    va_end(list);
    job->is_up = 0;
    job_end(job);
    append_log(job); /* with what the launcher had to say of it */
    return -1;
}

/* Return 1 if the launcher has ended; it is reaped then. */
static int has_ended(struct job *job)
{
    if (job->launcher > 0 && waitpid(job->launcher, NULL, WNOHANG) == 0)
        return 0;
    job->launcher = 0;
    return 1;
}

/* ---- the beginning ------------------------------------------------------ */

static int listen_for(struct job *job)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[256];

    path_of(job, "socket", path);
    if (strlen(path) >= sizeof(address.sun_path))
        return fail(job, "%s is too long for a socket; set a shorter TMPDIR",
                    path);
    strcpy(address.sun_path, path);
    unlink(path);
    job->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    job->shared = memfd_create("coll_compare", MFD_CLOEXEC);
    if (job->listener < 0 || job->shared < 0 ||
        ftruncate(job->shared, sizeof(struct peer_shared)) ||
        bind(job->listener, (struct sockaddr *)&address, sizeof(address)) ||
        listen(job->listener, PEER_MAX_RANKS))
        return fail(job, "cannot listen at %s: %s", path, strerror(errno));
    return 0;
}

/* In the child: become the launcher. */
static void become(const struct job *job)
{
    const char *line[MAX_WORDS];
    struct texts texts;
    char path[256];
    int null = open("/dev/null", O_RDONLY), log;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    path_of(job, "log", path);
    log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    path_of(job, "socket", path);
    setenv(PEER_SOCKET, path, 1);
    setenv(PEER_FOLDER, job->meet, 1);
    setenv("TMPDIR", job->folder, 1); /* what is left over goes with it */
    if (job->place->hosts)
        setenv(PEER_INTERFACE, "eth0", 1);
    if (job->form->variable)
        setenv(job->form->variable, "1", 1);
    form_line(job->form, job->place, job->ranks, &texts, line);
    execv(line[0], (char **)line);
    fprintf(stderr, "cannot run %s: %s", line[0], strerror(errno));
    _exit(127);
}

int job_start(struct job *job)
{
    job->listener = job->shared = -1;
    job->launcher = 0;
    job->why[0] = '\0';
    job->is_up = 0;
    for (int r = 0; r < PEER_MAX_RANKS; r++)
        job->sockets[r] = -1;
    if (listen_for(job))
        return -1;
    path_of(job, "XXXXXX", job->meet);
    if (!mkdtemp(job->meet))
        return fail(job, "cannot make a folder %s: %s", job->meet,
                    strerror(errno));
    fflush(NULL);
    job->launcher = fork();
    if (job->launcher == 0)
        become(job);
    if (job->launcher < 0) {
        job->launcher = 0;
        return fail(job, "cannot fork: %s", strerror(errno));
    }
    setpgid(job->launcher, job->launcher);
    return 0;
}

/* Wait until fd can be read; -1 if the deadline, the end of the job or a signal
 * comes first. */
static int await(struct job *job, int fd, double deadline)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};

    while (poll(&item, 1, 50) <= 0) {
        if (caught)
            return -1;
        if (has_ended(job))
            return fail(job, "it ended while starting");
        if (now_seconds() > deadline)
            return fail(job, "it did not start in time");
    }
    return 0;
}

enum got { GOT, GONE, LATE };

/* Read all of it; a rank may stop in the middle of an answer. */
static enum got get(int fd, void *at, size_t len, double deadline)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    char *next = at;

    while (len) {
        ssize_t n = poll(&item, 1, 50);

        if (caught)
            return GONE;
        if (n <= 0 && now_seconds() > deadline)
            return LATE;
        if (n <= 0)
            continue;
        n = read(fd, next, len);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return GONE;
        next += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return GOT;
}

/* Give a rank the memory of the harness barrier. */
static int give_shared(const struct job *job, int socket)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    char byte = 0;
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &job->shared, sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int greet(struct job *job, int socket, double deadline)
{
    struct peer_hello hello;
    struct ucred who;
    socklen_t len = sizeof(who);
    enum got got;

    if (await(job, socket, deadline))
        return -1;
    got = get(socket, &hello, sizeof(hello), deadline);
    if (got == LATE)
        return fail(job, "it did not start in time");
    if (got != GOT || hello.magic != PEER_MAGIC)
        return fail(job, "it ended while starting");
    if (hello.ranks != job->ranks || hello.rank < 0 ||
        hello.rank >= job->ranks || job->sockets[hello.rank] >= 0)
        return fail(job, "a rank says it is %d of %d, not of %d", hello.rank,
                    hello.ranks, job->ranks);
    job->sockets[hello.rank] = socket;
    if (!getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &len))
        job->pids[hello.rank] = who.pid;
    memcpy(job->version, hello.version, sizeof(job->version) - 1);
    return 0;
}

int job_meet(struct job *job, double seconds)
{
    double deadline = now_seconds() + seconds;
    int sockets[PEER_MAX_RANKS], n = 0, rc = 0;

    while (n < job->ranks && !rc) {
        rc = await(job, job->listener, deadline);
        if (!rc)
            sockets[n] = accept4(job->listener, NULL, NULL, SOCK_CLOEXEC);
        if (!rc && sockets[n] >= 0)
            n++;
    }
    for (int i = 0; i < n; i++) {
        if (!rc)
            rc = greet(job, sockets[i], deadline);
        if (rc)
            close(sockets[i]);
    }
    for (int r = 0; r < job->ranks && !rc; r++)
        if (give_shared(job, job->sockets[r]))
            rc = fail(job, "a rank ended while starting");
    job->is_up = !rc;
    return rc;
}

/* ---- measuring ---------------------------------------------------------- */

struct round {
    struct peer_reply reply;
    struct peer_sample samples[PEER_MAX_SAMPLES];
};

static int receive(struct job *job, int r, double deadline, struct round *round)
{
    struct peer_reply *reply = &round->reply;
    enum got got = get(job->sockets[r], reply, sizeof(*reply), deadline);

    if (got == GOT &&
        (reply->n_samples < 0 || reply->n_samples > PEER_MAX_SAMPLES))
        got = GONE;
    if (got == GOT)
        got = get(job->sockets[r], round->samples,
                  (size_t)reply->n_samples * sizeof(*round->samples), deadline);
    if (got != GOT)
        return fail(job, got == LATE ? "rank %d hung" : "rank %d died", r);
    if (reply->status == PEER_FAILED)
        return fail(job, "rank %d: %s", r, reply->error);
    return 0;
}

/* Merge a rank's answer into the job's: the earliest beginning and the latest end
 * count. */
static void merge(struct round *all, const struct round *one, int is_first)
{
    if (is_first) {
        *all = *one;
        return;
    }
    all->reply.wrong += one->reply.wrong;
    for (int i = 0; i < all->reply.n_samples; i++) {
        if (one->samples[i].begin < all->samples[i].begin)
            all->samples[i].begin = one->samples[i].begin;
        if (one->samples[i].end > all->samples[i].end)
            all->samples[i].end = one->samples[i].end;
    }
}

/* Wait for any rank that has not answered yet.  Returns its number, or -1. */
static int next_rank(struct job *job, const int *is_done, double deadline)
{
    struct pollfd items[PEER_MAX_RANKS];

    for (;;) {
        for (int r = 0; r < job->ranks; r++)
            items[r] = (struct pollfd){.fd = is_done[r] ? -1 : job->sockets[r],
                                       .events = POLLIN};
        if (poll(items, (nfds_t)job->ranks, 100) > 0)
            for (int r = 0; r < job->ranks; r++)
                if (items[r].revents)
                    return r;
        if (caught)
            return -1;
        if (now_seconds() > deadline)
            return fail(job, "it hung");
        if (has_ended(job))
            return fail(job, "it ended");
    }
}

static int collect(struct job *job, double deadline, struct round *all)
{
    int is_done[PEER_MAX_RANKS] = {0};
    static struct round one;

    for (int n = 0; n < job->ranks; n++) {
        int r = next_rank(job, is_done, deadline);

        if (r < 0 || receive(job, r, deadline, &one))
            return -1;
        if (n && one.reply.n_samples != all->reply.n_samples)
            return fail(job, "ranks disagree on the number of samples");
        merge(all, &one, !n);
        is_done[r] = 1;
    }
    return 0;
}

int job_measure(struct job *job, const struct peer_command *command,
                double deadline, struct answer *answer)
{
    static struct round all;

    for (int r = 0; r < job->ranks; r++)
        if (send(job->sockets[r], command, sizeof(*command), MSG_NOSIGNAL) !=
            sizeof(*command))
            return fail(job, "rank %d died", r);
    if (collect(job, deadline, &all))
        return -1;
    answer->status = (enum peer_status)all.reply.status;
    answer->n = all.reply.n_samples;
    answer->wrong = all.reply.wrong;
    for (int i = 0; i < answer->n; i++)
        answer->seconds[i] =
            (double)(all.samples[i].end - all.samples[i].begin) * 1e-9 /
            command->batch;
    return 0;
}

/* ---- the end ------------------------------------------------------------ */

/* Wait for the launcher.  Returns 0 if it ended in time. */
static int await_end(struct job *job, double seconds)
{
    double deadline = now_seconds() + seconds;

    while (!has_ended(job)) {
        if (now_seconds() > deadline)
            return -1;
        poll(NULL, 0, 5);
    }
    return 0;
}

static void ask_to_quit(const struct job *job)
{
    struct peer_command command = {.verb = PEER_QUIT};

    for (int r = 0; r < job->ranks; r++)
        if (send(job->sockets[r], &command, sizeof(command), MSG_NOSIGNAL) < 0)
            return; /* it is gone already */
}

/* End the launcher before the ranks, so that it can remove what they leave: After a
 * regular end the launcher ends by itself; after an error it gets a moment to
 * notice. */
static void end_launcher(struct job *job)
{
    double seconds = caught || !job->is_up ? 0.5 : 10;

    if (job->launcher <= 0 || !await_end(job, seconds))
        return;
    kill(job->launcher, SIGTERM);
    if (await_end(job, 5)) {
        kill(-job->launcher, SIGKILL);
        await_end(job, 5);
    }
}

/* A rank that hangs outlives its launcher.  As long as its socket is open, its
 * process number is still its own. */
static void end_rank(struct job *job, int r)
{
    struct pollfd item = {.fd = job->sockets[r], .events = POLLIN};

    if (job->sockets[r] < 0)
        return;
    poll(&item, 1, 0);
    if (!(item.revents & (POLLHUP | POLLERR)) && job->pids[r] > 0)
        kill(job->pids[r], SIGKILL);
    close(job->sockets[r]);
    job->sockets[r] = -1;
}

void job_end(struct job *job)
{
    if (job->is_up)
        ask_to_quit(job);
    end_launcher(job);
    for (int r = 0; r < job->ranks; r++)
        end_rank(job, r);
    if (job->listener >= 0)
        close(job->listener);
    if (job->shared >= 0)
        close(job->shared);
    job->listener = job->shared = -1;
    job->is_up = 0;
}
