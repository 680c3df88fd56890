/* SPDX-License-Identifier: BSD-3-Clause */
/* topo.c - describe the machine as one tree; group ranks by host. */
#include "lib/topo/topo.h"
#include "lib/topo/machine.h"
#include "lib/topo/quota.h"
#include "lib/trace/log.h"
#include "lib/util/map.h"
#include "lib/util/param.h"
#include "lib/util/read.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the tree ---------------------------------------------------------- */

struct coll__part *coll__part_add(struct coll__part *parent,
                                  enum coll__part_kind kind, int index)
{
    struct coll__part *part = calloc(1, sizeof(*part));

    if (!part)
        return NULL;
    part->kind = kind;
    part->index = index;
    if (parent && parent->last)
        parent->last->next = part;
    else if (parent)
        parent->first = part;
    if (parent)
        parent->last = part;
    return part;
}

void coll__part_free(struct coll__part *part)
{
    while (part) {
        struct coll__part *next = part->next;

        coll__part_free(part->first);
        free(part->links);
        free(part);
        part = next;
    }
}

struct coll__part *coll__part_numa(struct coll__part *part, int index)
{
    struct coll__part *found = NULL;

    if (index < 0 || (part->kind == PART_NUMA && part->index == index))
        return index < 0 ? NULL : part;
    for (struct coll__part *p = part->first; p && !found; p = p->next)
        found = coll__part_numa(p, index);
    return found;
}

int coll__topo_add_nic(struct coll__topo *topo, const struct coll__nic *nic)
{
    struct coll__part *near =
        *nic->bus ? coll__hwloc_holder(topo, nic->bus) : NULL;
    struct coll__part *part;

    if (!near || near->kind != PART_SWITCH)
        near = coll__part_numa(topo->machine, nic->numa_node);
    part = coll__part_add(near ? near : topo->machine, PART_NIC, -1);
    if (!part)
        return COLL_ERR_NOMEM;
    part->nic = *nic;
    return COLL_OK;
}

static int load(struct coll__topo *topo)
{
    int is_file = coll__param_is_set(PARAM_TOPO_FILE), status;

    status = coll__hwloc_load(topo, is_file ? coll__param_text(PARAM_TOPO_FILE)
                                            : NULL);
    if (status || is_file)
        return status;
    status = coll__verbs_load(topo);
    if (!status)
        status = coll__net_load(topo);
    if (status)
        log_error("topo", "no memory left for the list of network devices; "
                          "free some memory or start fewer ranks");
    return status;
}

/* Find how much of the machine this process may use. */
static void note_quota(struct coll__topo *topo)
{
    struct coll__quota quota;

    coll__quota_load(&quota);
    topo->machine->quota = quota.cores;
}

int coll__topo_create(struct coll__topo **topo)
{
    struct coll__topo *new = calloc(1, sizeof(*new));
    int status;

    if (!new) {
        log_error("topo", "no memory left for the description of this "
                          "machine; free some memory or start fewer ranks");
        return COLL_ERR_NOMEM;
    }
    status = load(new);
    if (!status && !coll__param_is_set(PARAM_TOPO_FILE))
        note_quota(new);
    if (status) {
        coll__topo_destroy(new);
        return status;
    }
    *topo = new;
    return COLL_OK;
}

void coll__topo_destroy(struct coll__topo *topo)
{
    if (!topo)
        return;
    coll__part_free(topo->machine);
    coll__hwloc_free(topo->hwloc);
    free(topo);
}

static int write_as(const struct coll__topo *topo, enum coll_topo_format format,
                    char **text)
{
    int status = COLL_ERR_INVALID;

    switch (format) {
    case COLL_TOPO_XML:
        return coll__hwloc_xml(topo->hwloc, text);
    case COLL_TOPO_TEXT:
        status = coll__part_text(topo->machine, text);
        break;
    case COLL_TOPO_DOT:
        status = coll__part_dot(topo->machine, text);
        break;
    }
    if (status == COLL_ERR_INVALID)
        log_error("topo",
                  "topology format %d is none of COLL_TOPO_TEXT, "
                  "COLL_TOPO_XML and COLL_TOPO_DOT",
                  (int)format);
    else if (status)
        log_error("topo", "no memory left to write the topology; free some "
                          "memory");
    return status;
}

/* Numbers in hwloc's XML and in the trees have a decimal point in every locale. */
int coll__topo_format(const struct coll__topo *topo,
                      enum coll_topo_format format, char **text)
{
    locale_t before = coll__points();
    int status = write_as(topo, format, text);

    coll__points_end(before);
    return status;
}

/* ---- this process ------------------------------------------------------ */

/* Return the inode of a namespace, 0 if the kernel does not tell it. */
static uint64_t namespace_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

/* Hash the set by FNV-1a without its trailing zeros, so that the size of the buffer does
 * not matter. */
static uint32_t hash_set(const cpu_set_t *set, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)set;
    uint32_t hash = 2166136261u;

    while (len && !bytes[len - 1])
        len--;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

struct place {
    const cpu_set_t *set;
    size_t len;
    int32_t *within;
};

static int ask_within(const struct coll__hwloc *hwloc, void *arg)
{
    const struct place *place = arg;

    return coll__hwloc_within(hwloc, place->set, place->len, place->within);
}

/* Find the parts that hold these processors, in COLL_TOPO_FILE if it is set. */
static int find_within(const cpu_set_t *set, size_t len,
                       int32_t within[COLL__WITHIN])
{
    struct place place = {set, len, within};

    if (coll__param_is_set(PARAM_TOPO_FILE))
        return coll__kept_ask(coll__param_text(PARAM_TOPO_FILE), ask_within,
                              &place);
    coll__topo_within(set, len, within);
    return COLL_OK;
}

static int find_cores(struct coll__peer *peer)
{
    struct coll__cores cores;
    int status;

    peer->n_cores = 1;
    for (int kind = 0; kind < COLL__WITHIN; kind++)
        peer->within[kind] = -1;
    if (coll__cores_of(0, &cores))
        return COLL_OK;
    peer->n_cores = CPU_COUNT_S(cores.len, cores.set);
    peer->cpuset = hash_set(cores.set, cores.len);
    status = find_within(cores.set, cores.len, peer->within);
    CPU_FREE(cores.set);
    return status;
}

static void find_quota(struct coll__peer *peer)
{
    struct coll__quota quota;

    coll__quota_load(&quota);
    peer->quota = quota.cores;
    peer->quota_group = quota.group;
}

int coll__topo_self(struct coll__peer *peer)
{
    char id[40];

    if (coll__read_line("/proc/sys/kernel/random", "boot_id", id, sizeof(id))) {
        memset(id, 0, sizeof(id));
        gethostname(id, sizeof(id) - 1);
    }
    memset(peer, 0, sizeof(*peer));
    snprintf(peer->host_id, sizeof(peer->host_id), "%s/%llu", id,
             (unsigned long long)namespace_of("/proc/self/ns/net"));
    peer->pid = (int32_t)getpid();
    peer->pid_ns = namespace_of("/proc/self/ns/pid");
    find_quota(peer);
    return find_cores(peer);
}

/* ---- groups ------------------------------------------------------------ */

/* Sort by host, then by rank, which is the order in memory. */
static int by_host(const void *a, const void *b)
{
    const struct coll__peer *x = *(struct coll__peer *const *)a;
    const struct coll__peer *y = *(struct coll__peer *const *)b;
    int order = strncmp(x->host_id, y->host_id, sizeof(x->host_id));

    return order ? order : (x > y) - (x < y);
}

/* Sort by host, then by quota, then by rank. */
static int by_quota(const void *a, const void *b)
{
    const struct coll__peer *x = *(struct coll__peer *const *)a;
    const struct coll__peer *y = *(struct coll__peer *const *)b;
    int order = strncmp(x->host_id, y->host_id, sizeof(x->host_id));

    if (!order)
        order = (x->quota_group > y->quota_group) -
                (x->quota_group < y->quota_group);
    return order ? order : (x > y) - (x < y);
}

/* Are two ranks on the same machine?  Containers of one machine count as hosts, but share
 * its cores. */
static int are_one_machine(const struct coll__peer *x,
                           const struct coll__peer *y)
{
    const char *slash = memchr(x->host_id, '/', sizeof(x->host_id));
    size_t len = slash ? (size_t)(slash + 1 - x->host_id) : sizeof(x->host_id);

    return !strncmp(x->host_id, y->host_id, len);
}

static int is_same_host(const struct coll__peer *x, const struct coll__peer *y)
{
    return !strncmp(x->host_id, y->host_id, sizeof(x->host_id));
}

/* Return the end of the run of ranks on the host of sorted[first]. */
static int end_of_host(struct coll__peer *const *sorted, int first, int size)
{
    int end = first;

    while (end < size && is_same_host(sorted[first], sorted[end]))
        end++;
    return end;
}

/* Add up the cores of some ranks, each cpuset once; `number` keeps this count apart from
 * the others in `sets`. */
static int32_t count_sets(struct coll__peer *const *members, int n,
                          uint64_t number, struct coll__map *sets)
{
    int32_t n_cores = 0;

    for (int i = 0; i < n; i++) {
        int *seen = coll__map_at(sets, number << 32 | members[i]->cpuset);

        if (*seen < 0)
            n_cores += members[i]->n_cores;
        *seen = 1;
    }
    return n_cores;
}

/* Return how many cores the ranks of one machine may use; the ranks are sorted by host
 * and quota.  A control group's cores count up to its quota only; the group's number is
 * valid within its container alone.  A fraction of a core does not count, since no rank
 * has that core to itself. */
static int32_t count_cores(struct coll__peer *const *members, int n,
                           const struct coll__peer *peers,
                           struct coll__map *sets)
{
    uint64_t number = 2 * (uint64_t)(members[0] - peers) + 1;
    double all = count_sets(members, n, number, sets), allowed = 0;

    for (int first = 0, end = 0; first < n; first = end) {
        double quota = members[first]->quota, cores;

        while (end < n && is_same_host(members[end], members[first]) &&
               members[end]->quota_group == members[first]->quota_group)
            end++;
        number = 2 * (uint64_t)(members[first] - peers);
        cores = count_sets(members + first, end - first, number, sets);
        allowed += quota > 0 ? min_double(cores, quota) : cores;
    }
    allowed = min_double(all, allowed);
    return allowed < 1 ? 1 : (int32_t)allowed;
}

/* Fill in n_sharers and local_cores of all ranks.  Hosts of one machine are adjacent,
 * since their ids begin alike. */
static void share_cores(struct coll__peer *peers, struct coll__peer **sorted,
                        int size, struct coll__map *sets)
{
    qsort(sorted, (size_t)size, sizeof(*sorted), by_quota);
    for (int first = 0, end = 0; first < size; first = end) {
        int32_t n_cores;

        while (end < size && are_one_machine(sorted[first], sorted[end]))
            end++;
        n_cores = count_cores(sorted + first, end - first, peers, sets);
        for (int i = first; i < end; i++) {
            sorted[i]->n_sharers = end - first;
            sorted[i]->local_cores = n_cores;
        }
    }
}

/* Fill in the entries of one host's ranks; `host` is its lowest rank at first. */
static void fill_host(struct coll__peer **members, int n,
                      const struct coll__peer *peers)
{
    for (int i = 0; i < n; i++) {
        members[i]->host = (int32_t)(members[0] - peers);
        members[i]->local_rank = i;
        members[i]->local_size = n;
    }
}

/* Find the hosts, and number them by their lowest ranks. */
static int number_hosts(struct coll__peer *peers, struct coll__peer **sorted,
                        int size)
{
    int n_hosts = 0;

    qsort(sorted, (size_t)size, sizeof(*sorted), by_host);
    for (int first = 0, end = 0; first < size; first = end) {
        end = end_of_host(sorted, first, size);
        fill_host(sorted + first, end - first, peers);
    }
    for (int r = 0; r < size; r++) /* the lowest rank of each host comes first */
        peers[r].host =
            peers[r].host == r ? n_hosts++ : peers[peers[r].host].host;
    return n_hosts;
}

int coll__topo_group(struct coll__peer *peers, int size)
{
    struct coll__peer **sorted = malloc((size_t)size * sizeof(*sorted));
    int n_hosts = COLL_ERR_NOMEM;
    struct coll__map sets;

    if (coll__map_init(&sets, 2 * (size_t)size) || !sorted) {
        log_error("topo",
                  "no memory left to group %d ranks by host; free "
                  "some memory or start fewer ranks",
                  size);
    } else {
        for (int r = 0; r < size; r++)
            sorted[r] = &peers[r];
        share_cores(peers, sorted, size, &sets);
        n_hosts = number_hosts(peers, sorted, size);
    }
    coll__map_fini(&sets);
    free(sorted);
    return n_hosts;
}
