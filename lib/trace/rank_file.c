/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_file.c - name a rank's file, and replace it as a whole. */
#include "lib/trace/rank_file.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Name the unfinished file so that the patterns "FILE.*" and "*.SUFFIX" do not match it. */
static void name_half(const char *path, char half[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash + 1 - path) : 0;

    snprintf(half, PATH_MAX, "%.*s.%s.new", n, path, path + n);
}

/* ---- naming -------------------------------------------------------------------- */

static int cannot_write(const char *variable, const char *path)
{
    log_error("trace", "%s: cannot write %s: %s; name another file", variable,
              path, strerror(errno));
    return COLL_ERR_INVALID;
}

/* Write an unfinished file, and remove it.  Returns 0, or -1 and errno. */
static int probe(const char *path)
{
    char half[PATH_MAX];
    FILE *file;

    name_half(path, half);
    file = fopen(half, "we");
    if (!file)
        return -1;
    fclose(file);
    unlink(half);
    return 0;
}

/* Put the working directory before the path, since the program may change it.  Returns 0,
 * or -1 and errno. */
static int make_absolute(const char *path, struct coll__rank_file *file)
{
    char folder[PATH_MAX] = "";
    int n;

    if (*path != '/' && !getcwd(folder, sizeof(folder)))
        return -1;
    n = snprintf(file->path, sizeof(file->path), "%s%s%s", folder,
                 *folder ? "/" : "", path);
    errno = ENAMETOOLONG;
    return n < (int)sizeof(file->path) ? 0 : -1;
}

int coll__rank_file_open(enum coll__param variable, int rank,
                         struct coll__rank_file *file)
{
    struct coll__rank_file made = {.variable = coll__param_name(variable)};
    char path[PATH_MAX];

    if (!coll__trace_path(coll__param_text(variable), rank, path)) {
        size_t len = strlen(path);

        snprintf(path + len, sizeof(path) - len, ".%d", rank);
    }
    if (probe(path) || make_absolute(path, &made))
        return cannot_write(made.variable, path);
    *file = made;
    return COLL_OK;
}

/* ---- writing ------------------------------------------------------------------- */

/* Returns 0, or -1 and errno. */
static int replace(const char *path, void (*put)(FILE *to, const void *arg),
                   const void *arg)
{
    char half[PATH_MAX];
    FILE *to;
    int is_bad;

    name_half(path, half);
    to = fopen(half, "we");
    if (!to)
        return -1;
    put(to, arg);
    is_bad = ferror(to);
    if (fclose(to) || is_bad || rename(half, path)) {
        int err = errno;

        unlink(half);
        errno = err;
        return -1;
    }
    return 0;
}

int coll__rank_file_write(const struct coll__rank_file *file,
                          void (*put)(FILE *to, const void *arg),
                          const void *arg)
{
    locale_t before = coll__points();
    int rc = replace(file->path, put, arg);

    if (rc)
        log_warn("trace",
                 "cannot write %s: %s; free some disk space, or set %s to "
                 "another file",
                 file->path, strerror(errno), file->variable);
    coll__points_end(before);
    return rc == 0;
}
