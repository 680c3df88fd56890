/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_output.c - pass the ranks' lines on, whole and in order of arrival.
 *
 * While only one rank has written to a stream, its lines pass as they are, so
 * that rank 0's JSON stays JSON; from the moment a second one speaks, every
 * line of that stream begins with "[rank] ".  stdout stays stdout and stderr
 * stays stderr, and each of them counts its own speakers.
 */
#include "tools/collrun.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int is_plain;
    int err; /* errno of the first write that failed */
    struct {
        int first_rank; /* that spoke, or -1 */
        int is_many;
    } target[3];
} output;

void output_init(int is_plain, int first, int n)
{
    memset(&output, 0, sizeof(output));
    output.is_plain = is_plain;
    for (int i = 0; i < 3; i++)
        output.target[i].first_rank = -1;
    if (n > 1 && !files_are_wanted() && isatty(STDOUT_FILENO))
        output.target[STDOUT_FILENO].first_rank =
            first; /* it speaks for itself */
}

int output_status(void)
{
    if (!output.err || output.err == EPIPE)
        return output.err ? 128 + SIGPIPE : 0;
    complain("cannot write the output: %s; make room or write elsewhere",
             strerror(output.err));
    return EXIT_FAILURE;
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);

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

/* Write one line, its newline included. */
static int pass_line(const struct stream *s, const char *text, size_t len)
{
    char line[sizeof(s->held) + 32];
    int n = 0;

    if (output.target[s->target].first_rank < 0)
        output.target[s->target].first_rank = s->rank;
    if (output.target[s->target].first_rank != s->rank)
        output.target[s->target].is_many = 1;
    if (output.target[s->target].is_many && !output.is_plain)
        n = snprintf(line, sizeof(line), "[%d] ", s->rank);
    memcpy(line + n, text, len);
    return write_all(s->target, line, (size_t)n + len);
}

/* Pass on every whole line that is held; a line too long for the buffer goes
 * in pieces. */
static int pass_lines(struct stream *s)
{
    char *from = s->held, *end = s->held + s->n_held, *newline;
    int rc = 0;

    while (!rc && (newline = memchr(from, '\n', (size_t)(end - from)))) {
        rc = pass_line(s, from, (size_t)(newline + 1 - from));
        from = newline + 1;
    }
    if (!rc && from == s->held && s->n_held == sizeof(s->held)) {
        rc = pass_line(s, from, s->n_held);
        from = end;
    }
    s->n_held = (size_t)(end - from);
    memmove(s->held, from, s->n_held);
    return rc;
}

int stream_pump(struct stream *s)
{
    ssize_t n = read(s->fd, s->held + s->n_held, sizeof(s->held) - s->n_held);

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
    if (s->n_held) {
        /* Others' lines must not go on in this one. */
        if (output.target[s->target].is_many && s->n_held < sizeof(s->held))
            s->held[s->n_held++] = '\n';
        pass_line(s, s->held, s->n_held);
    }
    s->n_held = 0;
    files_close(s);
    close(s->fd);
    s->fd = -1;
}
