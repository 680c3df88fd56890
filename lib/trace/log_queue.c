/* SPDX-License-Identifier: BSD-3-Clause */
/* log_queue.c - the queue of log lines.
 *
 * Code may log anywhere: during a transfer, or under a lock.  So a line first goes into
 * a queue.  The thread that logged it writes it to stderr at once, or when it has
 * released its last lock, and never waits for the reader of stderr.  If stderr does not
 * take the line, later lines and calls try again.
 *
 * The caller's handler gets lines at the end of a call of the library, or while a call
 * waits; so the handler may call the library.  Lines of the library's own thread wait for
 * such a call: while that thread was in a handler, no thread would notice the death of a
 * peer.
 *
 * The queue is bounded.  Lines that do not fit are counted, and the count is logged.
 */
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_WAITING 128u
#define STUCK_S 0.05     /* if stderr took nothing, try again after so many s */
/* at the process's end, wait so many s for stderr to take the last lines */
#define LAST_WORDS_S 0.5

/* ---- the queue -------------------------------------------------------------- */

struct line {
    enum coll_log_level level;
    const char *part;
    uint64_t who; /* as `speaker` */
    char text[COLL__LINE_MAX];
};

/* The lines that wait; under coll__inner_lock.  Any thread may read
 * coll__log_n_waiting. */
static struct {
    struct line lines[MAX_WAITING];
    unsigned first, n;
    unsigned n_dropped; /* since the queue became full */
    size_t n_written;   /* bytes of the first line */
    int is_writing;     /* some thread writes the first line */
    double stuck_until; /* stderr took nothing; when to try again */
    void (*handler)(enum coll_log_level, const char *, const char *, void *);
    void *arg;
} queue;
atomic_uint coll__log_n_waiting;

static void set_waiting(void)
{
    atomic_store_explicit(&coll__log_n_waiting, queue.n + queue.n_dropped,
                          memory_order_relaxed);
}

/* A child does not repeat its parent's lines. */
static void forget_parent(void)
{
    queue.n = queue.n_dropped = 0;
    queue.n_written = 0;
    queue.is_writing = 0;
    set_waiting();
}

static void watch_locks(void)
{
    coll__inner_lock.in_child = forget_parent;
    coll__generation_now(); /* forks are watched from now on */
    coll__when_unlocked(coll__log_flush);
}

void coll__log_enqueue(enum coll_log_level level, const char *part,
                       const char *text)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    struct line *line;

    pthread_once(&watched, watch_locks);
    coll__lock(&coll__inner_lock);
    if (queue.n < MAX_WAITING) {
        line = &queue.lines[(queue.first + queue.n++) % MAX_WAITING];
        line->level = level;
        line->part = part;
        line->who = coll__log_speaker();
        snprintf(line->text, sizeof(line->text), "%s", text);
    } else {
        queue.n_dropped++;
    }
    set_waiting();
    coll__unlock(&coll__inner_lock);
}

/* Copy the next line.  Returns 0 if there is none.  When the queue is empty again, one
 * line tells how many lines were dropped. */
static int peek_line(struct line *line)
{
    if (!queue.n && !queue.n_dropped)
        return 0;
    if (!queue.n) {
        struct line *lost = &queue.lines[queue.first];

        lost->level = COLL_LOG_WARN;
        lost->part = "log";
        lost->who = coll__log_speaker();
        snprintf(lost->text, sizeof(lost->text),
                 "%u lines before this one were dropped, since nobody took "
                 "them",
                 queue.n_dropped);
        queue.n = 1;
        queue.n_dropped = 0;
    }
    *line = queue.lines[queue.first];
    return 1;
}

static void drop_line(void)
{
    queue.first = (queue.first + 1) % MAX_WAITING;
    queue.n--;
    queue.n_written = 0;
    set_waiting();
}

/* ---- to stderr --------------------------------------------------------------- */

/* Write without waiting.  Returns the number of bytes, or -1 for later.  The reader of
 * stderr may have stopped reading.  A pipe is opened again to make only this write
 * non-blocking: the flags of descriptor 2 are shared with other processes.  Lines are
 * lost if writing fails. */
static ssize_t write_now(const char *text, size_t len)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct stat st;
    ssize_t n;
    int fd = -1;

    if (fstat(STDERR_FILENO, &st))
        return (ssize_t)len;
    if (S_ISFIFO(st.st_mode))
        fd = open("/proc/self/fd/2",
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (S_ISSOCK(st.st_mode))
        n = send(STDERR_FILENO, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (fd < 0 && poll(&ready, 1, 0) == 0)
        return -1;
    else
        n = write(fd < 0 ? STDERR_FILENO : fd, text, len);
    if (n < 0)
        n = errno == EAGAIN || errno == EINTR ? -1 : (ssize_t)len;
    if (fd >= 0)
        close(fd);
    return n;
}

static size_t format_line(const struct line *line, char *text, size_t len)
{
    uint64_t who = line->who;
    int n = who ? snprintf(text, len, "coll %d/%d %s: %s\n",
                           (int)(who & 0xffffffff), (int)(who >> 32),
                           line->part, line->text)
                : snprintf(text, len, "coll %s: %s\n", line->part, line->text);

    return min_size((size_t)n, len - 1);
}

/* Write the first line, or the rest of it, without the lock.  Returns 0 if there is no
 * line, or stderr takes nothing. */
static int write_first(void)
{
    char text[COLL__LINE_MAX + 64];
    struct line line;
    size_t len;
    ssize_t n;

    if (!peek_line(&line))
        return 0;
    len = format_line(&line, text, sizeof(text));
    queue.is_writing = 1;
    coll__unlock(&coll__inner_lock);
    n = write_now(text + queue.n_written, len - queue.n_written);
    coll__lock(&coll__inner_lock);
    queue.is_writing = 0;
    if (n < 0)
        queue.stuck_until = coll__now() + STUCK_S;
    else if ((queue.n_written += (size_t)n) >= len)
        drop_line();
    return n >= 0;
}

/* One thread writes at a time; other threads leave their lines to it.  If a handler is
 * set meanwhile, the handler gets the remaining lines. */
static void write_all(int may_have_handler)
{
    coll__lock(&coll__inner_lock);
    if (!queue.is_writing && coll__now() >= queue.stuck_until)
        while ((!queue.handler || may_have_handler) && write_first())
            ;
    coll__unlock(&coll__inner_lock);
}

/* Wait, without the lock, until the line that a thread is writing is written. */
static void await_writer(void)
{
    double deadline = coll__now() + LAST_WORDS_S;
    struct timespec pause = {.tv_nsec = 100000};

    while (queue.is_writing && coll__now() < deadline) {
        coll__unlock(&coll__inner_lock);
        nanosleep(&pause, NULL);
        coll__lock(&coll__inner_lock);
    }
}

int coll__log_is_stuck(void)
{
    int is_stuck = 0;

    if (coll__log_is_waiting()) {
        coll__lock(&coll__inner_lock);
        is_stuck = !queue.handler;
        coll__unlock(&coll__inner_lock);
    }
    return is_stuck;
}

void coll__log_flush(void)
{
    if (coll__log_is_waiting())
        write_all(0);
}

/* ---- to the caller's handler --------------------------------------------------- */

static _Thread_local int is_in_handler;

/* Hand over the lines that are there now.  Lines that are logged meanwhile wait for the
 * next time, so that this ends even if the handler makes the library log. */
static void hand_over(void)
{
    void (*handler)(enum coll_log_level, const char *, const char *, void *);
    char error[COLL__LINE_MAX];
    struct line line;
    unsigned n_left;
    void *arg;

    snprintf(error, sizeof(error), "%s", coll_last_error());
    is_in_handler = 1;
    coll__lock(&coll__inner_lock);
    for (n_left = queue.n + (queue.n_dropped > 0); n_left; n_left--) {
        handler = queue.handler;
        arg = queue.arg;
        if (!handler || queue.is_writing || !peek_line(&line))
            break;
        drop_line();
        coll__unlock(&coll__inner_lock);
        handler(line.level, line.part, line.text, arg);
        coll__lock(&coll__inner_lock);
    }
    coll__unlock(&coll__inner_lock);
    is_in_handler = 0;
    coll__log_set_error(error);
}

void coll__log_deliver(void)
{
    int has_handler;

    if (is_in_handler || coll__holds_lock())
        return;
    coll__lock(&coll__inner_lock);
    has_handler = queue.handler != NULL;
    coll__unlock(&coll__inner_lock);
    if (has_handler)
        hand_over();
    else
        coll__log_flush();
}

void coll_set_log_handler(void (*handler)(enum coll_log_level, const char *,
                                          const char *, void *),
                          void *arg)
{
    coll__log_done(COLL_OK); /* to the one before */
    coll__lock(&coll__inner_lock);
    queue.handler = handler;
    queue.arg = arg;
    if (handler)
        await_writer();
    coll__unlock(&coll__inner_lock);
}

/* At the process's end write the remaining lines to stderr, since the handler may be
 * gone.  Wait LAST_WORDS_S at most for the reader. */
static void __attribute__((destructor)) say_last_words(void)
{
    double deadline = coll__now() + LAST_WORDS_S;
    struct timespec pause = {.tv_nsec = 5000000};

    while (coll__log_is_waiting() && coll__now() < deadline) {
        queue.stuck_until = 0;
        write_all(1);
        if (coll__log_is_waiting())
            nanosleep(&pause, NULL);
    }
}
