/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune_file.c - write the tuning file, completely or not at all.
 *
 * It is written under another name in the same folder, and renamed when it is on the
 * disk.  Each measured problem has one entry, unless it is noise.  An entry covers the
 * sizes up to half way (by factors) to the next smaller and larger measured sizes.
 */
#include "tools/coll_tune.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const struct tune_file *file, const char *what)
{
    fprintf(stderr,
            "coll_tune: cannot %s %s: %s; make room, or write elsewhere by "
            "--output\n",
            what, file->path, strerror(errno));
    return -1;
}

static int refuse(const struct tune_file *file)
{
    fprintf(stderr,
            "coll_tune: %s is already there; --force writes over it, --output "
            "takes another name\n",
            file->path);
    return -1;
}

/* A device or a directory must not be replaced by a file. */
static int is_special(const char *path)
{
    struct stat info;

    return !stat(path, &info) && !S_ISREG(info.st_mode);
}

int tune_file_open(struct tune_file *file, const struct tune_options *options)
{
    size_t len = strlen(options->path) + 16;

    *file = (struct tune_file){.fd = -1, .is_forced = options->is_forced};
    file->path = strdup(options->path);
    file->temporary = malloc(len);
    if (!file->path || !file->temporary) {
        fputs("coll_tune: no memory\n", stderr);
        return -1;
    }
    if (!file->is_forced && !access(file->path, F_OK))
        return refuse(file);
    if (is_special(file->path)) {
        fprintf(stderr,
                "coll_tune: %s is no regular file; --output takes another "
                "name\n",
                file->path);
        return -1;
    }
    snprintf(file->temporary, len, "%s.XXXXXX", options->path);
    file->fd = mkstemp(file->temporary);
    return file->fd < 0 ? failed(file, "write") : 0;
}

void tune_file_close(struct tune_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
        unlink(file->temporary);
    }
    free(file->path);
    free(file->temporary);
    file->fd = -1;
    file->path = file->temporary = NULL;
}

/* ---- content ------------------------------------------------------------------ */

static double microseconds(double seconds)
{
    return round(seconds * 1e9) / 1e3;
}

static json_t *candidates_of(const struct tune_row *row)
{
    json_t *list = json_array();

    for (int c = 0; c < row->n; c++) {
        const struct tune_candidate *of = &row->candidates[c];
        json_t *item = json_pack("{s:s, s:f}", "algorithm", of->algorithm,
                                 "predicted_us", microseconds(of->predicted));

        if (of->measured > of->error)
            json_object_set_new(item, "measured_us",
                                json_real(microseconds(of->measured)));
        json_array_append_new(list, item);
    }
    return list;
}

/* Return the size half way, by factors, to the next size of the same collective; -1 if
 * there is none. */
static json_int_t border(const struct tune_table *table, int before, int behind)
{
    const struct tune_row *a = &table->rows[before], *b = &table->rows[behind];

    if (before < 0 || behind >= table->n_rows ||
        a->collective != b->collective)
        return -1;
    return (json_int_t)sqrt((double)a->bytes * (double)b->bytes);
}

static json_t *entry_of(const struct tune_table *table, int i, int ranks,
                        int hosts)
{
    const struct tune_row *row = &table->rows[i];
    const struct tune_candidate *best = &row->candidates[row->best];
    json_int_t from = border(table, i - 1, i), to = border(table, i, i + 1);

    return json_pack("{s:s, s:[i,i], s:[i,i], s:[I,I], s:s, s:f, s:f, s:o}",
                     "collective", coll_collective_name(row->collective),
                     "ranks", ranks, ranks, "hosts", hosts, hosts, "bytes",
                     from < 0 ? (json_int_t)0 : from + 1,
                     to < 0 ? (json_int_t)INT64_MAX : to, "algorithm",
                     best->algorithm, "predicted_us",
                     microseconds(best->predicted), "measured_us",
                     microseconds(best->measured), "candidates",
                     candidates_of(row));
}

static json_t *links_of(const struct tune_table *table)
{
    static const char *const names[] = {"host", "network"};
    json_t *list = json_array();

    for (int l = 0; l < 2; l++)
        if (table->links[l].is_there && !table->links[l].is_noise)
            json_array_append_new(list,
                                  json_pack("{s:s, s:f, s:f}", "level",
                                            names[l], "alpha",
                                            table->links[l].alpha, "beta",
                                            table->links[l].beta));
    return list;
}

static json_t *machine_of(const struct coll_comm *comm)
{
    char name[64] = "";

    gethostname(name, sizeof(name) - 1);
    return json_pack("{s:s, s:s, s:i, s:i, s:s}", "libcoll", coll_version(),
                     "host", name, "ranks", coll_comm_size(comm), "hosts",
                     coll_comm_n_hosts(comm), "transports",
                     coll_comm_transports(comm));
}

/* Write a value and free it; 0 or -1. */
static int put(FILE *to, const char *before, json_t *value, const char *behind)
{
    int rc = -1;

    if (value && fputs(before, to) >= 0)
        rc = json_dumpf(value, to, JSON_REAL_PRECISION(6));
    json_decref(value);
    return rc || fputs(behind, to) < 0 ? -1 : 0;
}

/* The limits that were added by hand to the file that is replaced, or NULL. */
static json_t *limits_of(const struct tune_file *file)
{
    json_t *old = json_load_file(file->path, 0, NULL);
    json_t *limits = json_incref(json_object_get(old, "limits"));

    json_decref(old);
    return limits;
}

/* One entry a line. */
static int put_all(FILE *to, const struct coll_comm *comm,
                   const struct tune_table *table, json_t *limits)
{
    int ranks = coll_comm_size(comm), hosts = coll_comm_n_hosts(comm);
    const char *before = "  ";
    int rc = put(to, "{\"version\": 1,\n \"machine\": ", machine_of(comm), ",\n");

    if (!rc && limits)
        rc = put(to, " \"limits\": ", json_incref(limits), ",\n");
    if (!rc)
        rc = put(to, " \"links\": ", links_of(table), ",\n \"entries\": [\n");
    for (int i = 0; i < table->n_rows && !rc; i++)
        if (table->rows[i].n && !table->rows[i].is_noise) {
            rc = put(to, before, entry_of(table, i, ranks, hosts), "");
            before = ",\n  ";
        }
    return rc || fputs("\n]}\n", to) < 0 ? -1 : 0;
}

/* Put the content on the disk. */
static int put_file(const struct tune_file *file, const struct coll_comm *comm,
                    const struct tune_table *table)
{
    mode_t mask = umask(0);
    int copy = dup(file->fd), rc = -1;
    FILE *to = copy < 0 ? NULL : fdopen(copy, "w");
    json_t *limits = limits_of(file);

    umask(mask);
    if (to)
        rc = put_all(to, comm, table, limits);
    json_decref(limits);
    if (!to && copy >= 0)
        close(copy);
    if (to && fclose(to))
        rc = -1;
    return rc || fchmod(file->fd, 0666 & ~mask) || fsync(file->fd) ? -1 : 0;
}

/* ---- writing ------------------------------------------------------------------ */

/* Without --force, do not replace a file that was created meanwhile. */
static int put_in_place(const struct tune_file *file)
{
    if (file->is_forced)
        return rename(file->temporary, file->path) ? failed(file, "write") : 0;
    if (!link(file->temporary, file->path)) {
        unlink(file->temporary);
        return 0;
    }
    return errno == EEXIST ? refuse(file) : failed(file, "write");
}

int tune_file_write(struct tune_file *file, const struct coll_comm *comm,
                    const struct tune_table *table)
{
    if (put_file(file, comm, table))
        return failed(file, "write");
    if (put_in_place(file))
        return -1;
    close(file->fd);
    file->fd = -1;
    return 0;
}
