/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_files.c - copy each rank's output to files DIR/rank.N/stdout and stderr, as
 * mpirun and horovodrun do.  The lines are passed on as well.
 *
 * If a write to a file fails, collrun reports it and stops writing that file.  The job
 * continues, also on other nodes; at its end this collrun exits with a failure.
 */
#include "tools/collrun.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *folder; /* NULL: there are none */
    int width;          /* digits of a rank's number, so that names sort */
    int has_failed;     /* in any run of the job */
} files;

void files_init(const char *folder, int size)
{
    files.folder = folder;
    files.width = snprintf(NULL, 0, "%d", size - 1);
}

int files_are_wanted(void) { return files.folder != NULL; }

int files_status(void)
{
    return files.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* "DIR/rank.03", or a file in it; -1 if the path is too long. */
static int name(char path[PATH_MAX], int rank, const char *file)
{
    int n = snprintf(path, PATH_MAX, "%s/rank.%0*d%s", files.folder,
                     files.width, rank, file);

    if (n < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* Make the folder and its parents. */
static int make_folders(char *path)
{
    for (char *c = path + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            if (mkdir(path, 0777) && errno != EEXIST) /* path: what it said */
                return -1;
            *c = '/';
        }
    return mkdir(path, 0777) && errno != EEXIST ? -1 : 0;
}

static int open_file(char path[PATH_MAX], int rank, int target, int is_again)
{
    const char *file = target == STDOUT_FILENO ? "/stdout" : "/stderr";

    if (name(path, rank, "") || make_folders(path) || name(path, rank, file))
        return -1;
    return open(path,
                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
                    (is_again ? 0 : O_TRUNC),
                0666);
}

int files_open(struct stream *s, int is_again)
{
    char path[PATH_MAX];

    s->copy = -1;
    if (!files.folder)
        return 0;
    s->copy = open_file(path, s->rank, s->target, is_again);
    if (s->copy >= 0)
        return 0;
    complain("cannot make %s: %s; name another folder by --output-filename",
             path, strerror(errno));
    return -1;
}

void files_copy(struct stream *s, const char *text, size_t len)
{
    char path[PATH_MAX];
    ssize_t n = 0;
    int err;

    while (s->copy >= 0 && len && (n >= 0 || errno == EINTR)) {
        n = write(s->copy, text, len);
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    if (s->copy < 0 || !len)
        return;
    err = errno;
    name(path, s->rank, s->target == STDOUT_FILENO ? "/stdout" : "/stderr");
    complain("cannot write %s: %s; the job goes on without it", path,
             strerror(err));
    files.has_failed = 1;
    files_close(s);
}

void files_close(struct stream *s)
{
    if (s->copy >= 0)
        close(s->copy);
    s->copy = -1;
}
