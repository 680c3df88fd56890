/* SPDX-License-Identifier: BSD-3-Clause */
/* log_queue.c - lines on their way out.
 *
 * A line is put into a queue where it is said, which may be anywhere: amid a
 * transfer, under a lock.  It goes out where that harms nobody.  To stderr: at
 * once by the thread that said it, or when it has given its last lock back, and
 * without waiting for who reads there; what stderr does not take now, any later
 * line or call tries again.  To the caller's handler: at the end of a call of
 * the library, or while one waits, so that it may call the library itself; what
 * the library's own thread says waits for such a call, since nobody else would
 * notice a death while that thread is in a handler.
 *
 * The queue is bounded: more than it holds is counted, and the count is said.
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
#define STUCK_S 0.05     /* until a stderr that took nothing is tried again */
#define LAST_WORDS_S 0.5 /* for what is left at the end */

/* ---- the queue -------------------------------------------------------------- */

struct line {
    enum coll_log_level level;
    const char *part;
    uint64_t who; /* as `speaker` */
    char text[COLL__LINE_MAX];
};

/* What was said and has not gone out; all under coll__inner_lock, but the
 * number, which anybody may look at. */
static struct {
    struct line lines[MAX_WAITING];
    unsigned first, n;
    unsigned n_dropped; /* since there was no room */
    size_t n_written;   /* bytes of the first line */
    int is_writing;     /* some thread writes the first line */
    double stuck_until; /* stderr takes nothing; ask again then */
    void (*handler)(enum coll_log_level, const char *, const char *, void *);
    void *arg;
} queue;
atomic_uint coll__log_n_waiting;

static void set_waiting(void)
{
    atomic_store_explicit(&coll__log_n_waiting, queue.n + queue.n_dropped,
                          memory_order_relaxed);
}

/* A child does not say again what its parent said. */
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

/* Copy the line that is to go out next; 0 when there is none.  Where some had
 * no room, that is said when there is room again. */
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

/* Write without waiting: the number of bytes, or -1 for later.  Whoever reads
 * stderr may have stopped to: a pipe is opened anew, to be non-blocking for
 * this write alone (the flag of the one that is open is shared with others).
 * What cannot be written at all is lost. */
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

/* Write the first line, or what is left of it; the lock is given up meanwhile.
 * 0 when there is none, or stderr takes nothing. */
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

/* One thread writes at a time; the others leave their lines to it.  What a handler
 * that is set meanwhile may have is left to it. */
static void write_all(int may_have_handler)
{
    coll__lock(&coll__inner_lock);
    if (!queue.is_writing && coll__now() >= queue.stuck_until)
        while ((!queue.handler || may_have_handler) && write_first())
            ;
    coll__unlock(&coll__inner_lock);
}

/* Give the line that a thread is writing the time that it takes: those behind it
 * are not to wait for it.  The lock is given up meanwhile. */
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

/* Hand over what there is now; what is said meanwhile waits for the next time,
 * so that a handler that makes the library speak comes to an end. */
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

/* What is left when the process ends goes to stderr: the handler's time may be
 * over.  Who does not read it by then will not. */
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
