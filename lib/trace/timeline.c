/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline.c - COLL_TIMELINE: Chrome's trace format as Horovod writes it.
 *
 * A JSON array.  Each row of the picture is a "process": one for each shape of
 * operation, and one for each name that a program gives (coll_timeline_end()).
 * An operation is a pair of B and E events named ALLREDUCE, and inside it QUEUE,
 * while it waits for others on its channel, and COLL_ALLREDUCE, while it runs.
 * There is no NEGOTIATE_ALLREDUCE: libcoll negotiates nothing.  If two operations
 * of a shape run at once, the second has a row of its own, so that in each row
 * every E belongs to the B before it.
 *
 * When an operation has ended, one write adds all its events and the array's
 * closing bracket.  The next write overwrites the bracket.
 * So the file is valid JSON at any moment, even if the process is killed.  The kernel
 * can only cut such a write between two pages of the file.  The events of one write are in
 * one page, with blanks before them if need be, so that such a cut leaves whole events,
 * without the bracket; readers of this format do not need it.
 */
#include "lib/trace/trace.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROWS 256
#define NAME 96   /* bytes of a row's name */
#define MOST 2048 /* bytes of what is written at once, but for blanks */
#define PAGE 4096 /* bytes, or a part of what the kernel takes as one */

static const char closing[] = "\n]\n";

/* Under trace.c's lock. */
static struct {
    int fd, n_rows;
    off_t at;     /* behind the last event */
    double start; /* on coll__now() */
    struct row {
        char name[NAME];
        double until; /* the end of its last span */
    } rows[ROWS];
    struct text {
        char bytes[MOST];
        size_t len;
    } text;
} timeline;

/* ---- text -------------------------------------------------------------------- */

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Append one event; an event that does not fit is left out.  MOST holds the longest. */
static void add(const char *format, ...)
{
    struct text *t = &timeline.text;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->bytes + t->len, MOST - t->len, format, args);
    va_end(args);
    if (n > 0 && t->len + (size_t)n < MOST)
        t->len += (size_t)n;
}

/* Bytes from here to the next page if that is where `len` bytes must go, to be in one. */
static size_t gap_for(size_t len)
{
    size_t left = PAGE - (size_t)timeline.at % PAGE;

    return len > left ? left : 0;
}

/* Write the added events and the closing bracket.  Returns 0, or -1 and errno; then the
 * file is as it was before. */
static int put(void)
{
    char bytes[2 * MOST];
    size_t len, gap;
    ssize_t n;
    int err;

    add("%s", closing);
    gap = gap_for(timeline.text.len);
    len = gap + timeline.text.len;
    memset(bytes, ' ', gap);
    memcpy(bytes + gap, timeline.text.bytes, timeline.text.len);
    timeline.text.len = 0;
    n = pwrite(timeline.fd, bytes, len, timeline.at);
    if (n == (ssize_t)len) {
        timeline.at += (off_t)(len - strlen(closing));
        return 0;
    }
    if (n >= 0 &&
        pwrite(timeline.fd, bytes + n, len - (size_t)n, timeline.at + n) >= 0)
        errno = ENOSPC; /* writing the rest tells why it was not taken */
    err = errno;
    if (timeline.at &&
        pwrite(timeline.fd, closing, strlen(closing), timeline.at) > 0 &&
        ftruncate(timeline.fd, timeline.at + (off_t)strlen(closing)))
        err = errno;
    errno = err;
    return -1;
}

/* Microseconds since the start; earlier times count as 0. */
static long long stamp(double t)
{
    return t > timeline.start ? (long long)((t - timeline.start) * 1e6) : 0;
}

/* Copy a name for JSON: "_" replaces characters that would need an escape. */
static void copy_name(char to[NAME], const char *from, int lane)
{
    size_t n = 0;

    for (; *from && n < NAME - 12; from++)
        to[n++] = *from < ' ' || *from > '~' || *from == '"' || *from == '\\'
                      ? '_'
                      : *from;
    to[n] = '\0';
    if (lane)
        snprintf(to + n, NAME - n, " (%d)", lane + 1);
}

/* ---- rows -------------------------------------------------------------------- */

static void describe_row(int pid)
{
    add(",\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, "
        "\"args\": {\"name\": \"%s\"}}",
        pid, timeline.rows[pid - 1].name);
    add(",\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": %d, "
        "\"args\": {\"sort_index\": %d}}",
        pid, pid);
}

/* Return the number of a row of that name which is free from `begin` on; make one if
 * there is none.  If there are too many rows, return the last one. */
static int find_row(const char *name, double begin, double end)
{
    char text[NAME];
    int lane = 0, i;

    copy_name(text, name, lane);
    for (i = 0; i < timeline.n_rows; i++) {
        if (strcmp(timeline.rows[i].name, text))
            continue;
        if (timeline.rows[i].until <= begin)
            break;
        copy_name(text, name, ++lane); /* made after this one, so it comes */
    }
    if (i == ROWS)
        return 0;
    if (i == timeline.n_rows) {
        timeline.n_rows++;
        memcpy(timeline.rows[i].name, text, NAME);
        describe_row(i + 1);
    }
    timeline.rows[i].until = end;
    return i + 1;
}

static void add_begin(int pid, const char *name, double t)
{
    add(",\n{\"ph\": \"B\", \"name\": \"%s\", \"ts\": %lld, \"pid\": %d}", name,
        stamp(t), pid);
}

static void add_end(int pid, double t)
{
    add(",\n{\"ph\": \"E\", \"ts\": %lld, \"pid\": %d}", stamp(t), pid);
}

/* ---- what happened ------------------------------------------------------------ */

/* Write "reduce_scatter" as Horovod does: "REDUCESCATTER". */
static void upper(char to[NAME], const char *from)
{
    size_t n = 0;

    for (; *from && n < NAME - 1; from++)
        if (*from != '_')
            to[n++] = *from >= 'a' && *from <= 'z' ? (char)(*from - 32) : *from;
    to[n] = '\0';
}

/* Return "float32" for f32, as numpy and Horovod do. */
static const char *long_type(enum coll_type type)
{
    static const struct {
        char first;
        const char *name;
    } kinds[] = {{'f', "float"}, {'i', "int"}, {'u', "uint"}, {'b', "bfloat"}};
    static char text[24]; /* under the lock */
    const char *name = coll_type_name(type);

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (name[0] == kinds[i].first) {
            snprintf(text, sizeof(text), "%s%s", kinds[i].name,
                     name + strcspn(name, "0123456789"));
            return text;
        }
    return name;
}

int coll__timeline_note(const struct coll__traced *op)
{
    char row[NAME], name[NAME], inner[NAME + 8];
    const char *what = coll_collective_name(op->collective);
    int pid;

    snprintf(row, sizeof(row), "%s %s %zu", what, long_type(op->type),
             op->count);
    pid = find_row(row, op->called, op->ended);
    if (!pid)
        return 0;
    upper(name, what);
    snprintf(inner, sizeof(inner), "COLL_%s", name);
    add_begin(pid, name, op->called);
    if (stamp(op->begun) > stamp(op->called)) {
        add_begin(pid, "QUEUE", op->called);
        add_end(pid, op->begun);
    }
    add_begin(pid, inner, op->begun);
    add_end(pid, op->ended);
    add(",\n{\"ph\": \"E\", \"ts\": %lld, \"pid\": %d, \"args\": {\"dtype\": "
        "\"%s\", \"shape\": \"[%zu]\", \"algorithm\": \"%.32s\", "
        "\"transport\": \"%.64s\"",
        stamp(op->ended), pid, long_type(op->type), op->count, op->algorithm,
        op->transports);
    if (op->user_tag)
        add(", \"user_tag\": %llu", (unsigned long long)op->user_tag);
    add("}}");
    return put();
}

int coll__timeline_span(const char *row, const char *what, double begin,
                        double end)
{
    char name[NAME];
    int pid = find_row(row, begin, end);

    if (!pid)
        return 0;
    copy_name(name, what, 0);
    add_begin(pid, name, begin);
    add_end(pid, end);
    return put();
}

int coll__timeline_open(const char *path)
{
    struct timespec t;
    int err;

    timeline.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (timeline.fd < 0)
        return -1;
    timeline.start = coll__now();
    clock_gettime(CLOCK_REALTIME, &t);
    add("[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": "
        "{\"start_time_since_epoch_in_micros\": %lld}}",
        (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    add(",\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": 0, "
        "\"args\": {\"sort_index\": 0}}");
    if (!put())
        return 0;
    err = errno;
    close(timeline.fd);
    errno = err;
    return -1;
}
