/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_hostlist.c - read the hosts and the number of ranks on each, from --hosts or
 * from a host file of mpirun, horovodrun or DeepSpeed. */
#include "tools/collrun_hosts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OF_ONE 100000
/* of names and addresses, and of the user at a host */
#define NAME_CHARACTERS                                                        \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%@"

/* Read a positive whole number; 0 if text is none. */
static int number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    return end == text || *end || n < 1 || n > MOST_OF_ONE ? 0 : (int)n;
}

/* Add n ranks on a host; n 0: as many as --npernode says, else one.  A host named again
 * gets more ranks: PBS writes a line for each rank, mostly with a host's lines side by
 * side. */
static int add(struct hosts *hosts, char *name, int n,
               const struct options *options)
{
    int i = hosts->n_hosts - 1;

    n = n ? n : 1;
    if (!*name || *name == '-' || name[strspn(name, NAME_CHARACTERS)])
        return -1;
    while (i >= 0 && strcmp(hosts->host[i].name, name) != 0)
        i--;
    if (i < 0 && hosts->n_hosts == MAX_HOSTS)
        return -1;
    if (i < 0) {
        i = hosts->n_hosts++;
        hosts->host[i] = (struct host){.name = name};
    }
    hosts->host[i].n =
        options->per_node ? options->per_node : hosts->host[i].n + n;
    return hosts->host[i].n <= MOST_OF_ONE ? 0 : -1;
}

/* Cut "h1", "h1:4", "fd00::1", "[fd00::1]" or "[fd00::1]:4" into a name and a number,
 * 0 if it has none; returns -1 if text is none of these. */
static int split(char *item, char **name, int *n)
{
    char *end = *item == '[' ? strchr(item, ']') : NULL,
         *colon = strchr(end ? end : item, ':');

    *n = 0;
    *name = end ? item + 1 : item;
    if (*item == '[' && (!end || (end[1] && colon != end + 1)))
        return -1;
    if (end)
        *end = '\0';
    else if (colon && strchr(colon + 1, ':'))
        return 0; /* an IPv6 address alone */
    if (!colon)
        return 0;
    *colon = '\0';
    *n = number(colon + 1);
    return *n ? 0 : -1;
}

/* Strip the space around an item. */
static char *strip(char *item)
{
    size_t len;

    item += strspn(item, " \t\r\n");
    len = strlen(item);
    while (len && strchr(" \t\r\n", item[len - 1]))
        item[--len] = '\0';
    return item;
}

/* Read "h1:4,h2:4"; a host alone has one rank. */
static int read_list(char *text, struct hosts *hosts,
                     const struct options *options)
{
    char *item, *name;
    int n;

    while ((item = strsep(&text, ",")))
        if (split(strip(item), &name, &n) || add(hosts, name, n, options)) {
            complain("--hosts wants HOST:RANKS,HOST:RANKS,..., such as "
                     "node1:4,node2:4 or [fd00::1]:4");
            return -1;
        }
    return 0;
}

/* Open MPI's files may have "slots = 4". */
static void close_up_equals(char *line)
{
    char *to = line;

    for (char *from = line; *from; from++) {
        if (*from == '=') {
            while (to > line && strchr(" \t", to[-1]))
                to--;
            from += strspn(from + 1, " \t");
            *to++ = '=';
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* Read "host", "host:4" or "host slots=4 max_slots=8"; 0 also for an empty
 * line. */
static int read_line(char *line, struct hosts *hosts,
                     const struct options *options)
{
    char *rest, *item, *name;
    int n;

    line[strcspn(line, "#\n")] = '\0';
    close_up_equals(line);
    item = strtok_r(line, " \t\r", &rest);
    if (!item)
        return 0;
    if (split(item, &name, &n))
        return -1;
    for (char *w; (w = strtok_r(NULL, " \t\r", &rest));) {
        if (!strncmp(w, "slots=", 6))
            n = number(w + 6);
        if (strncmp(w, "max_slots=", 10) && strncmp(w, "max-slots=", 10) &&
            (strncmp(w, "slots=", 6) || !n))
            return -1;
    }
    return add(hosts, name, n, options);
}

int hosts_read_lines(FILE *file, struct hosts *hosts,
                     const struct options *options)
{
    size_t room = 0;
    ssize_t len = getdelim(&hosts->text, &room, '\0', file);
    int is_whole = len <= 0 || hosts->text[len - 1]; /* no 0 byte in it */
    int n = 0;
    char *rest = len > 0 ? skip_byte_order_mark(hosts->text) : NULL, *line;

    while ((line = strsep(&rest, "\n"))) {
        n++;
        if (read_line(line, hosts, options))
            return n;
    }
    return is_whole ? 0 : n;
}

static int read_file(const char *path, struct hosts *hosts,
                     const struct options *options)
{
    FILE *file = fopen(path, "re");
    int n;

    if (!file) {
        complain("cannot read --hostfile %s: %s", path, strerror(errno));
        return -1;
    }
    n = hosts_read_lines(file, hosts, options);
    if (n)
        complain("%s, line %d: it must be HOST, HOST:N or HOST slots=N, where "
                 "HOST may be [fd00::1]",
                 path, n);
    fclose(file);
    return n ? -1 : 0;
}

/* Keep the first n ranks: drop further ranks of the last host, and later hosts. */
static void cut(struct hosts *hosts, int n)
{
    int left = n, i = 0;

    for (; i < hosts->n_hosts && left > 0; i++) {
        if (hosts->host[i].n > left)
            hosts->host[i].n = left;
        left -= hosts->host[i].n;
    }
    hosts->n_hosts = i;
    hosts->n_ranks = n;
}

int hosts_cut(struct hosts *hosts, const struct options *options)
{
    const char *which = options->hosts      ? "--hosts"
                        : options->hostfile ? "--hostfile"
                                            : options->discovery_script;
    int most = options->n ? options->n : options->max_np;

    if (!hosts->n_hosts) {
        complain("%s names no host", which);
        return -1;
    }
    if (options->n_nodes > hosts->n_hosts) {
        complain("--nnodes %d, but %s names %d", options->n_nodes, which,
                 hosts->n_hosts);
        return -1;
    }
    if (options->n_nodes)
        hosts->n_hosts = options->n_nodes;
    for (int i = 0; i < hosts->n_hosts; i++)
        hosts->n_ranks += hosts->host[i].n;
    if (options->n > hosts->n_ranks) {
        complain("-n %d, but %s has room for %d ranks; leave -n out, or give "
                 "the hosts more",
                 options->n, which, hosts->n_ranks);
        return -1;
    }
    if (most && most < hosts->n_ranks)
        cut(hosts, most);
    return 0;
}

int hosts_read(const struct options *options, struct hosts *hosts)
{
    int rc;

    if (options->hostfile) {
        rc = read_file(options->hostfile, hosts, options);
    } else {
        hosts->text = strdup(options->hosts);
        rc = hosts->text ? read_list(hosts->text, hosts, options) : -1;
    }
    if (!rc && hosts->n_hosts)
        rc = hosts_choose(options, hosts);
    return rc ? rc : hosts_cut(hosts, options);
}

void hosts_fini(struct hosts *hosts)
{
    for (int i = 0; i < MAX_HOSTS; i++) { /* also those that were left out */
        free(hosts->host[i].slots);
        free(hosts->host[i].is_marked);
    }
    free(hosts->text);
}
