/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.c - COLL_HISTORY: the last calls as a file.
 *
 * Histories may be read at any time, so the file is written by whoever finds that a
 * communicator has failed, whatever its caller does; of a SIGUSR2, by the reactor's
 * thread, which the handler wakes by a descriptor.  A program may exit as soon as it
 * sees the failure: what is not in the file by then is written at the exit.  The file
 * is written under another name and renamed: who reads it has all of it.
 */
#include "lib/trace/recorder.h"
#include "lib/comm/comm.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void forget(void);

static struct coll__lock lock = COLL__LOCK(forget);

/* Under it. */
static struct {
    struct coll_comm *comms;
    char path[PATH_MAX - 8]; /* "" where nothing is to be written */
    int rank, size;          /* that name it */
} recorder;

/* ---- the file ---------------------------------------------------------------- */

static void put_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\": \"", name);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
            fputc('?', file);
        else
            fputc(*text, file);
    fputc('"', file);
}

static void put_call(FILE *file, const struct coll_comm *comm,
                     const struct coll__head *head)
{
    size_t at = (head->seq - 1) % COLL__HISTORY;
    const struct coll__times *times =
        head->series == SERIES_HOST || head->series == SERIES_COMPARED
            ? comm->recorder.times
            : NULL;
    char what[COLL__HEAD_TEXT];

    coll__head_describe(head, what, sizeof(what));
    fprintf(file, "      {\"seq\": %llu, ", (unsigned long long)head->seq);
    put_text(file, "what", what);
    fprintf(file,
            ", \"collective\": \"%s\", \"count\": %llu, \"root\": %d, "
            "\"way\": %d",
            coll_collective_name((enum coll_collective)head->collective),
            (unsigned long long)head->count, (int)head->root, head->way);
    if (times)
        fprintf(file, ", \"called\": %.6f, \"ended\": %.6f",
                atomic_load_explicit(&times->called[at], memory_order_relaxed),
                atomic_load_explicit(&times->ended[at], memory_order_relaxed));
    fputc('}', file);
}

/* One that is written anew meanwhile is left out. */
static void put_series(FILE *file, struct coll_comm *comm, int series)
{
    static const char *const names[] = {[SERIES_HOST] = "host",
                                        [SERIES_STREAM] = "stream",
                                        [SERIES_QUEUED] = "queued"};
    struct coll__history *h = &comm->history[series];
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t done = atomic_load_explicit(&h->n_done, memory_order_relaxed);
    const char *before = "\n";
    struct coll__head head;

    fprintf(file,
            "    {\"series\": \"%s\", \"started\": %llu, "
            "\"ended\": %llu, \"last\": [",
            names[series], (unsigned long long)n, (unsigned long long)done);
    for (uint64_t seq = n > COLL__HISTORY ? n - COLL__HISTORY + 1 : 1; seq <= n;
         seq++)
        if (coll__history_get(h, seq, &head)) {
            fputs(before, file);
            put_call(file, comm, &head);
            before = ",\n";
        }
    fputs("]}", file);
}

/* Which ranks they are, by their numbers in the first communicator. */
static void put_ranks(FILE *file, const struct coll_comm *comm)
{
    fprintf(file, ", \"ranks\": [");
    for (int r = 0; r < comm->size; r++)
        fprintf(file, "%s%d", r ? ", " : "",
                comm->members.first ? comm->members.first[r] : r);
    fputc(']', file);
}

static void put_comm(FILE *file, struct coll_comm *comm)
{
    int status =
        atomic_load_explicit(&comm->failure.status, memory_order_acquire);
    char where[COLL__WHERE_MAX];

    comm->recorder.is_told = status != COLL_OK;
    coll__history_where(&comm->history[SERIES_HOST], where, sizeof(where));
    fprintf(file, "  {\"id\": \"%s\", \"rank\": %d, \"size\": %d",
            comm->recorder.id, comm->rank, comm->size);
    put_ranks(file, comm);
    fprintf(file, ",\n   ");
    put_text(file, "where", where);
    fprintf(file, ",\n   ");
    put_text(file, "failure", status ? comm->failure.text : "");
    fprintf(file, ",\n   \"calls\": [\n");
    for (int s = 0, n = 0; s < N_HISTORIES; s++)
        if (s == SERIES_HOST ||
            atomic_load_explicit(&comm->history[s].n_started,
                                 memory_order_relaxed)) {
            fputs(n++ ? ",\n" : "", file);
            put_series(file, comm, s);
        }
    fprintf(file, "]}");
}

static void put_all(FILE *file)
{
    char host[64] = "";
    struct timespec t;

    gethostname(host, sizeof(host) - 1);
    clock_gettime(CLOCK_REALTIME, &t);
    fprintf(file,
            "{\"libcoll_history\": 1, \"rank\": %d, \"size\": %d, "
            "\"pid\": %d,\n ",
            recorder.rank, recorder.size, (int)getpid());
    put_text(file, "host", host);
    fprintf(file, ", \"time\": %.3f, \"clock\": %.6f,\n \"communicators\": [\n",
            (double)t.tv_sec + (double)t.tv_nsec * 1e-9, coll__now());
    for (struct coll_comm *c = recorder.comms; c; c = c->recorder.next) {
        put_comm(file, c);
        fputs(c->recorder.next ? ",\n" : "\n", file);
    }
    fprintf(file, "]}\n");
}

/* The name of what is not whole yet, which "FILE.*" does not take in. */
static void name_half(const char *path, char half[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash + 1 - path) : 0;

    snprintf(half, PATH_MAX, "%.*s.%s.new", n, path, path + n);
}

/* Write it under another name first; 0, or -1 and errno. */
static int write_file(void)
{
    char path[PATH_MAX];
    FILE *file;
    int is_bad;

    name_half(recorder.path, path);
    file = fopen(path, "we");
    if (!file)
        return -1;
    put_all(file);
    is_bad = ferror(file);
    if (fclose(file) || is_bad || rename(path, recorder.path)) {
        int err = errno;

        unlink(path);
        errno = err;
        return -1;
    }
    return 0;
}

/* Locked. */
static void write_locked(void)
{
    locale_t before;

    if (!*recorder.path || !recorder.comms)
        return;
    before = coll__points();
    if (write_file())
        log_warn("trace",
                 "cannot write %s: %s; make room, or have "
                 "COLL_HISTORY name another place",
                 recorder.path, strerror(errno));
    else
        log_info("trace", "the last calls are in %s; see coll_history",
                 recorder.path);
    coll__points_end(before);
}

void coll__recorder_write(struct coll_comm *comm)
{
    if (!comm->recorder.times || coll__comm_is_inherited(comm))
        return;
    coll__lock(&lock);
    if (!comm->recorder.is_told)
        write_locked();
    coll__unlock(&lock);
}

/* Has one failed whose failure is in no file?  Locked. */
static int is_untold(void)
{
    struct coll_comm *c = recorder.comms;

    while (c && (c->recorder.is_told ||
                 atomic_load_explicit(&c->failure.status,
                                      memory_order_acquire) == COLL_OK))
        c = c->recorder.next;
    return c != NULL;
}

/* The lock also waits for a file that is being written. */
static void write_at_exit(void)
{
    coll__lock(&lock);
    if (is_untold())
        write_locked();
    coll__unlock(&lock);
}

static void have_exit(void) { atexit(write_at_exit); }

/* ---- SIGUSR2 ------------------------------------------------------------------ */

static atomic_int wake_fd = -1; /* what the handler writes to */
static struct sigaction old_action;

/* What takes and leaves the signal, over whether it is taken.  It is held while the
 * reactor starts and ends, under which none of the other locks may be. */
static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static int takes_signal;

static void on_signal(int number)
{
    const uint64_t one = 1;
    int err = errno, fd = atomic_load_explicit(&wake_fd, memory_order_relaxed);

    (void)number;
    if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
        errno = err; /* it is awake already */
    errno = err;
}

/* The file takes a while, and nobody is to wait for the reactor's lock. */
static void run(struct coll__task *task)
{
    (void)task;
    coll__reactor_unlock();
    coll__lock(&lock);
    write_locked();
    coll__unlock(&lock);
    coll__reactor_lock();
}

static struct coll__task task = {.run = run};

static void ready(struct coll__source *source, uint32_t events)
{
    uint64_t n;

    (void)events;
    if (read(source->fd, &n, sizeof(n)) == sizeof(n))
        coll__reactor_defer(&task);
}

static void dropped(struct coll__source *dropped)
{
    dropped->fd = -1;
    atomic_store_explicit(&wake_fd, -1, memory_order_relaxed);
}

static struct coll__source source = {.fd = -1};

static int is_by(const struct sigaction *action, void (*handler)(int))
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == handler;
}

/* Does the program leave it to us?  A child has our handler of its parent. */
static int is_free(void)
{
    struct sigaction now;

    if (sigaction(SIGUSR2, NULL, &now))
        return 0;
    if (is_by(&now, on_signal))
        return 1;
    if (!is_by(&now, SIG_DFL) && !is_by(&now, SIG_IGN))
        return 0;
    old_action = now;
    return 1;
}

static int watch(void)
{
    int rc, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return -1;
    source = (struct coll__source){
        .fd = fd, .events = EPOLLIN, .ready = ready, .dropped = dropped};
    coll__reactor_lock();
    rc = coll__reactor_add(&source);
    coll__reactor_unlock();
    if (rc) {
        close(fd);
        return -1;
    }
    atomic_store_explicit(&wake_fd, fd, memory_order_relaxed);
    return 0;
}

/* Where that cannot be, failures are written all the same. */
static int take_signal(void)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (!is_free()) {
        log_info("trace", "SIGUSR2 is the program's: COLL_HISTORY is written "
                          "at a failure alone");
        return 0;
    }
    if (coll__reactor_get())
        return 0;
    if (watch()) {
        coll__reactor_put();
        log_warn("trace", "cannot take SIGUSR2: COLL_HISTORY is written at a "
                          "failure alone");
        return 0;
    }
    sigemptyset(&ours.sa_mask);
    return !sigaction(SIGUSR2, &ours, NULL);
}

static void leave_signal(void)
{
    struct sigaction now;

    if (!sigaction(SIGUSR2, NULL, &now) && is_by(&now, on_signal))
        sigaction(SIGUSR2, &old_action, NULL);
    atomic_store_explicit(&wake_fd, -1, memory_order_relaxed);
    coll__reactor_lock();
    coll__reactor_cancel(&task);
    if (source.fd >= 0)
        coll__reactor_remove(&source);
    coll__reactor_unlock();
    coll__reactor_put();
}

/* Take the signal where there are communicators, and leave it where there are none,
 * whoever has added or removed one meanwhile. */
static void settle_signal(void)
{
    int has_comms;

    pthread_mutex_lock(&signal_lock);
    coll__lock(&lock);
    has_comms = recorder.comms != NULL;
    coll__unlock(&lock);
    if (has_comms && !takes_signal) {
        takes_signal = take_signal();
    } else if (!has_comms && takes_signal) {
        leave_signal();
        takes_signal = 0;
    }
    pthread_mutex_unlock(&signal_lock);
}

/* A child has none of the communicators, and the file is its parent's.  Whoever held
 * the signal's lock is not here to give it back. */
static void forget(void)
{
    recorder.comms = NULL;
    recorder.path[0] = '\0';
    pthread_mutex_init(&signal_lock, NULL);
    takes_signal = 0;
}

/* ---- which communicators ------------------------------------------------------- */

/* Note the path, which holds also when the program goes to another folder; 0, or -1
 * and errno. */
static int note_path(const char *path, int rank, int size)
{
    char folder[PATH_MAX] = "";
    int n;

    if (*path != '/' && !getcwd(folder, sizeof(folder)))
        return -1;
    coll__lock(&lock);
    n = snprintf(recorder.path, sizeof(recorder.path), "%s%s%s", folder,
                 *folder ? "/" : "", path);
    if (n >= (int)sizeof(recorder.path))
        recorder.path[0] = '\0';
    recorder.rank = rank;
    recorder.size = size;
    coll__unlock(&lock);
    errno = ENAMETOOLONG;
    return *recorder.path ? 0 : -1;
}

/* What a run before has left is a job before's, or, of ranks that were started again,
 * the failure for which they were: that stays, as run0.FILE.RANK of the first run. */
static void clear(const char *path)
{
    const char *count = getenv("TORCHELASTIC_RESTART_COUNT");
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash + 1 - path) : 0, run = count ? atoi(count) : 0;
    char kept[PATH_MAX];

    if (run > 0) {
        snprintf(kept, sizeof(kept), "%.*srun%d.%s", n, path, run - 1,
                 path + n);
        unlink(kept);
        if (!rename(path, kept) || errno == ENOENT)
            return;
        log_warn("trace", "cannot keep %s as %s: %s", path, kept,
                 strerror(errno));
    }
    unlink(path);
}

static int cannot_write(const char *path)
{
    log_error("trace", "COLL_HISTORY: cannot write %s: %s; name another file",
              path, strerror(errno));
    return COLL_ERR_INVALID;
}

int coll__recorder_open(int rank, int size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *text = coll__param_text(PARAM_HISTORY);
    char path[PATH_MAX], probe[PATH_MAX];
    FILE *file;

    if (!*text || *recorder.path)
        return COLL_OK;
    if (!coll__trace_path(text, rank, path)) {
        size_t len = strlen(path);

        snprintf(path + len, sizeof(path) - len, ".%d", rank);
    }
    name_half(path, probe);
    file = fopen(probe, "we");
    if (!file)
        return cannot_write(path);
    fclose(file);
    unlink(probe);
    clear(path);
    if (note_path(path, rank, size))
        return cannot_write(path);
    pthread_once(&once, have_exit);
    coll__trace_times();
    return COLL_OK;
}

static void name(struct coll_comm *comm)
{
    unsigned char secret[COLL__SECRET_BYTES];

    coll__ctrl_secret(comm->ctrl, "history", secret);
    for (int i = 0; i < 8; i++)
        snprintf(comm->recorder.id + 2 * i, 3, "%02x", secret[i]);
}

void coll__recorder_add(struct coll_comm *comm)
{
    int is_first;

    if (!*recorder.path)
        return;
    comm->recorder.times = calloc(1, sizeof(*comm->recorder.times));
    if (!comm->recorder.times) {
        log_warn("trace", "no memory for COLL_HISTORY");
        return;
    }
    name(comm);
    coll__lock(&lock);
    is_first = !recorder.comms;
    comm->recorder.next = recorder.comms;
    comm->recorder.at = &recorder.comms;
    if (recorder.comms)
        recorder.comms->recorder.at = &comm->recorder.next;
    recorder.comms = comm;
    coll__unlock(&lock);
    if (is_first)
        settle_signal();
}

void coll__recorder_remove(struct coll_comm *comm)
{
    int is_last = 0;

    if (comm->recorder.times && !coll__comm_is_inherited(comm)) {
        coll__lock(&lock);
        *comm->recorder.at = comm->recorder.next;
        if (comm->recorder.next)
            comm->recorder.next->recorder.at = comm->recorder.at;
        is_last = !recorder.comms;
        coll__unlock(&lock);
    }
    if (is_last)
        settle_signal();
    free(comm->recorder.times);
    comm->recorder = (struct coll__recorder){0};
}

/* ---- times ---------------------------------------------------------------------- */

static struct coll__times *times_of(struct coll_comm *comm,
                                    const struct coll__head *head)
{
    return coll__is_p2p((enum coll_collective)head->collective) ||
                   (head->series != SERIES_HOST &&
                    head->series != SERIES_COMPARED)
               ? NULL
               : comm->recorder.times;
}

void coll__recorder_called(struct coll_comm *comm,
                           const struct coll__head *head, double when)
{
    struct coll__times *times = times_of(comm, head);
    size_t at = (head->seq - 1) % COLL__HISTORY;

    if (!times)
        return;
    atomic_store_explicit(&times->ended[at], 0, memory_order_relaxed);
    atomic_store_explicit(&times->called[at], when, memory_order_relaxed);
}

void coll__recorder_ended(struct coll_comm *comm, const struct coll__head *head,
                          double when)
{
    struct coll__times *times = times_of(comm, head);

    if (times)
        atomic_store_explicit(&times->ended[(head->seq - 1) % COLL__HISTORY],
                              when, memory_order_relaxed);
}
