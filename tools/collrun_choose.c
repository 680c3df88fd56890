/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_choose.c - choose hosts and slots as DeepSpeed does: --include "h1@h2:0,2"
 * keeps only these, --exclude removes these.
 *
 * A slot is a place for one rank.  If slots are chosen by number, the number is that of a
 * GPU: the ranks of that host see only these GPUs.
 */
#include "tools/collrun_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const char *option, *text;
    int is_include;
    const char *from; /* the option that has named the hosts */
};

static struct host *find(struct hosts *hosts, const char *name)
{
    for (int i = 0; i < hosts->n_hosts; i++)
        if (!strcmp(hosts->host[i].name, name))
            return &hosts->host[i];
    return NULL;
}

/* Mark one slot, "2". */
static int mark_slot(const struct choice *choice, struct host *host,
                     const char *text)
{
    char *end;
    long slot = strtol(text, &end, 10);

    if (end == text || *end || slot < 0 || slot >= host->n) {
        complain("%s %s: %s has no slot %s; it has 0 to %d", choice->option,
                 choice->text, host->name, *text ? text : "\"\"", host->n - 1);
        return -1;
    }
    host->is_marked[slot] = 1;
    host->by_number = 1;
    return 0;
}

/* Cut "h2:0,2", "[fd00::1]:0,2" or a host alone into its name and its slots, NULL if it
 * has none. */
static char *split(char *part, char **slots)
{
    char *end = *part == '[' ? strchr(part, ']') : NULL, *colon;

    colon = strchr(end ? end : part, ':');
    *slots = NULL;
    if (end)
        *end = '\0';
    else if (colon && strchr(colon + 1, ':'))
        return part; /* an IPv6 address alone */
    if (colon) {
        *colon = '\0';
        *slots = colon + 1;
    }
    return part + !!end;
}

/* Mark the slots that one item, "h2" or "h2:0,2", names. */
static int mark(const struct choice *choice, struct hosts *hosts, char *part)
{
    char *slots, *name = split(part, &slots), *slot;
    struct host *host = find(hosts, name);
    int rc = 0;

    if (!host) {
        complain("%s %s: there is no host \"%s\" in %s", choice->option,
                 choice->text, name, choice->from);
        return -1;
    }
    if (!slots)
        memset(host->is_marked, 1, (size_t)host->n);
    while (!rc && slots && (slot = strsep(&slots, ",")))
        rc = mark_slot(choice, host, slot);
    return rc;
}

static int mark_all(const struct choice *choice, struct hosts *hosts)
{
    char *text = strdup(choice->text), *rest = text, *part;
    int rc = text ? 0 : -1;

    for (int i = 0; i < hosts->n_hosts && !rc; i++) {
        hosts->host[i].is_marked = calloc((size_t)hosts->host[i].n, 1);
        rc = hosts->host[i].is_marked ? 0 : -1;
    }
    if (rc)
        complain("out of memory");
    while (!rc && (part = strsep(&rest, "@")))
        rc = mark(choice, hosts, part);
    free(text);
    return rc;
}

/* Keep the marked slots, or those not marked. */
static int keep_slots(struct host *host, int is_include)
{
    int n = 0;

    host->slots = calloc((size_t)host->n, sizeof(*host->slots));
    if (!host->slots)
        return -1;
    for (int slot = 0; slot < host->n; slot++)
        if (host->is_marked[slot] == is_include)
            host->slots[n++] = slot;
    host->n = n;
    free(host->is_marked);
    host->is_marked = NULL;
    return 0;
}

int hosts_choose(const struct options *options, struct hosts *hosts)
{
    const char *from = options->hostfile ? "--hostfile" : "--hosts";
    struct choice choice = {"--include", options->include, 1, from};
    struct host host;
    int n = 0;

    if (options->exclude)
        choice = (struct choice){"--exclude", options->exclude, 0, from};
    if (!choice.text)
        return 0;
    if (mark_all(&choice, hosts))
        return -1;
    for (int i = 0; i < hosts->n_hosts; i++) {
        if (keep_slots(&hosts->host[i], choice.is_include)) {
            complain("out of memory");
            return -1;
        }
        host = hosts->host[i];
        hosts->host[i] = hosts->host[n]; /* it is left out */
        hosts->host[n] = host;
        n += host.n > 0;
    }
    hosts->n_hosts = n;
    if (!n)
        complain("%s %s leaves no host", choice.option, choice.text);
    return n ? 0 : -1;
}

/* ---- told to the ranks ----------------------------------------------------- */

int hosts_chose_slots(const struct hosts *hosts)
{
    for (int i = 0; i < hosts->n_hosts; i++)
        if (hosts->host[i].by_number)
            return 1;
    return 0;
}

/* "2:@2:0,2@": for each host the number of ranks, and the GPUs if they were chosen. */
char *hosts_write_slots(const struct hosts *hosts)
{
    char *list = NULL;
    size_t len;
    FILE *file = open_memstream(&list, &len);

    for (int i = 0; file && i < hosts->n_hosts; i++) {
        const struct host *host = &hosts->host[i];

        fprintf(file, "%d:", host->n);
        for (int s = 0; s < host->n && host->by_number; s++)
            fprintf(file, "%s%d", s ? "," : "", host->slots[s]);
        fputc('@', file);
    }
    if (file && !fclose(file) && list)
        return list;
    complain("out of memory");
    exit(EXIT_FAILURE);
}

const char *hosts_find_slots(char *list, int rank)
{
    char *part;

    while ((part = strsep(&list, "@"))) {
        char *slots = part;
        int n = atoi(strsep(&slots, ":"));

        if (rank < n)
            return slots;
        rank -= n;
    }
    return NULL;
}
