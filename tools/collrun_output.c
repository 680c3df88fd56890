/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_output.c - pass the ranks' lines on, whole and in order of arrival.
 *
 * While only one rank has written to a stream, its lines pass unchanged, so that rank
 * 0's JSON stays JSON.  Once a second rank writes to it, every line of that stream begins
 * with "[rank] ".  stdout and stderr stay separate: each has its own count of ranks
 * that have written.  A line is held until it ends.  A line of more than 1 MiB is
 * passed on in pieces, and ends before another rank's line.
 */
#include "tools/collrun.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_SIZE 8192
#define LAST_SIZE ((size_t)1 << 20)

static struct {
    int is_plain;
    int err; /* errno of the first write that failed */
    struct {
        int first_rank; /* that spoke, or -1 */
        int is_many;
        struct stream *open; /* the stream with an unfinished line, or NULL */
    } target[3];
} output;

void output_init(const struct options *options, int first, int n)
{
    memset(&output, 0, sizeof(output));
    output.is_plain = options->is_plain;
    for (int i = 0; i < 3; i++) {
        output.target[i].first_rank = -1;
        output.target[i].is_many = options->is_far; /* or will be */
    }
    if (n > 1 && !files_are_wanted() && isatty(STDOUT_FILENO))
        output.target[STDOUT_FILENO].first_rank =
            first; /* it speaks for itself */
}

int output_is_lost(void) { return output.err != 0; }

int output_status(void)
{
    if (!output.err || output.err == EPIPE)
        return output.err ? 128 + SIGPIPE : 0;
    complain("cannot write the output: %s; make room or write elsewhere",
             strerror(output.err));
    return EXIT_FAILURE;
}

/* Our stdout may be a non-blocking pipe: wait for its reader. */
static int wait_for_room(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLOUT};

    return poll(&at, 1, -1) >= 0 || errno == EINTR ? 0 : -1;
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EAGAIN && !wait_for_room(fd))
            continue;
        if (n < 0 && errno != EINTR) {
            if (!output.err)
                output.err = errno;
            return -1;
        }
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* End the line that another rank has begun. */
static int end_open_line(const struct stream *s)
{
    struct stream *open = output.target[s->target].open;

    if (!open || open == s)
        return 0;
    open->is_open = 0;
    output.target[s->target].open = NULL;
    return write_all(s->target, "\n", 1);
}

/* Write the prefix of this rank's lines; returns its length. */
static size_t begin_line(const struct stream *s, char *prefix, size_t len)
{
    if (s->rank == STREAM_OF_OTHERS)
        return 0;
    if (output.target[s->target].first_rank < 0)
        output.target[s->target].first_rank = s->rank;
    if (output.target[s->target].first_rank != s->rank)
        output.target[s->target].is_many = 1;
    if (s->is_open || !output.target[s->target].is_many || output.is_plain)
        return 0;
    return (size_t)snprintf(prefix, len, "[%d] ", s->rank);
}

/* Write one line, its newline included, or a piece of one. */
static int pass_line(struct stream *s, const char *text, size_t len)
{
    char line[FIRST_SIZE + 32]; /* one write for all of it, if it is not long */
    size_t n;

    if (end_open_line(s))
        return -1;
    n = begin_line(s, line, sizeof(line));
    if (n + len <= sizeof(line)) {
        memcpy(line + n, text, len);
        text = line;
        len += n;
    } else if (n && write_all(s->target, line, n)) {
        return -1;
    }
    if (write_all(s->target, text, len))
        return -1;
    s->is_open = text[len - 1] != '\n';
    output.target[s->target].open = s->is_open ? s : NULL;
    return 0;
}

/* Pass on every whole held line; a line that is too long goes in pieces. */
static int pass_lines(struct stream *s)
{
    char *from = s->held, *end = s->held + s->n_held, *newline;
    int rc = 0;

    while (!rc && (newline = memchr(from, '\n', (size_t)(end - from)))) {
        rc = pass_line(s, from, (size_t)(newline + 1 - from));
        from = newline + 1;
    }
    if (!rc && from == s->held && s->n_held == LAST_SIZE) {
        rc = pass_line(s, from, s->n_held);
        from = end;
    }
    s->n_held = (size_t)(end - from);
    memmove(s->held, from, s->n_held);
    return rc;
}

/* Make space in `held` to read into. */
static int have_room(struct stream *s)
{
    size_t size = s->size ? 2 * s->size : FIRST_SIZE;
    char *held;

    if (s->n_held < s->size)
        return 0;
    held = realloc(s->held, size);
    if (!held) {
        complain("no memory for a line of rank %d", s->rank);
        return -1;
    }
    s->held = held;
    s->size = size;
    return 0;
}

int stream_pump(struct stream *s)
{
    ssize_t n;

    if (have_room(s))
        return -1;
    n = read(s->fd, s->held + s->n_held, s->size - s->n_held);
    if (n > 0) {
        files_copy(s, s->held + s->n_held, (size_t)n);
        s->n_held += (size_t)n;
        return pass_lines(s);
    }
    if (!n || (errno != EAGAIN && errno != EINTR))
        stream_end(s);
    return 0;
}

void stream_end(struct stream *s)
{
    if (s->fd < 0)
        return;
    if (s->n_held)
        pass_line(s, s->held, s->n_held);
    if (s->is_open && output.target[s->target].is_many)
        write_all(s->target, "\n", 1); /* end it, so that no other rank continues it */
    if (output.target[s->target].open == s)
        output.target[s->target].open = NULL;
    free(s->held);
    s->held = NULL;
    s->n_held = s->size = 0;
    s->is_open = 0;
    files_close(s);
    close(s->fd);
    s->fd = -1;
}
