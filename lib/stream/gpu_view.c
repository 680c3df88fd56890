/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_view.c - how near the GPUs of a communicator's ranks are.  Plans for streams are
 * built and priced on this view (programs.c).
 *
 * Everything in it comes from what the ranks told each other when their devices were
 * joined, so the view is the same on every rank.
 */
#include "lib/stream/gpu_view.h"
#include "lib/comm/comm.h"
#include "lib/comm/links.h"
#include "lib/stream/calls.h"
#include "lib/device/cuda.h"
#include "lib/topo/gpus.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds to reduce or copy a byte: an H100 reads and writes 1.4 TB/s of copies
 * (tests/gpu/reports). */
#define GAMMA 0.7e-12

static const char *const names[COLL__N_NEAR] = {"gpu", "nvlink", "switch",
                                                "socket", "host"};

/* The answers of all ranks, and the groups made from them. */
struct meeting {
    struct coll__gpu_place *places;         /* [size] */
    unsigned char *nvlink, *by_host, *near; /* [size * size] */
    int *colors;                            /* [COLL__N_NEAR * size] */
    int *ring;                              /* [size] */
    int n, n_hosts, n_sharers;              /* ranks; the most of one GPU */
    const struct coll__peer *peers;         /* [size] */
    struct coll__level network; /* what a message between hosts costs there */
};

static int meeting_init(struct meeting *m, int size)
{
    size_t n = (size_t)size;

    m->places = calloc(n, sizeof(*m->places));
    m->nvlink = calloc(n, n);
    m->by_host = calloc(n, n);
    m->near = calloc(n, n);
    m->colors = calloc(n, COLL__N_NEAR * sizeof(*m->colors));
    m->ring = calloc(n, sizeof(*m->ring));
    if (m->places && m->nvlink && m->by_host && m->near && m->colors && m->ring)
        return COLL_OK;
    log_error("comm", "no memory for the GPUs of %d ranks", size);
    return COLL_ERR_NOMEM;
}

static void meeting_fini(struct meeting *m)
{
    free(m->places);
    free(m->nvlink);
    free(m->by_host);
    free(m->near);
    free(m->colors);
    free(m->ring);
}

/* ---- what each says -------------------------------------------------------- */

static int describe(struct coll__gpu_place *place, int *device)
{
    struct coll__cuda_home home;
    struct coll__cuda_gpu gpu;
    int rc = coll__cuda_home_of(NULL, &home);

    if (rc == COLL_OK)
        rc = coll__cuda_describe(home.device, &gpu);
    if (rc)
        return rc;
    *device = home.device;
    memcpy(place->uuid, gpu.uuid, sizeof(place->uuid));
    place->major = gpu.major;
    place->pid = (int32_t)getpid();
    coll__gpu_find(gpu.bus, place);
    return COLL_OK;
}

/* Find the links of the GPUs that this process sees: from the driver, or from the file
 * that COLL_TOPO_FILE names for this host. */
static void find_links(const struct coll_comm *comm, int device,
                       const struct coll__gpu_place *places,
                       unsigned char *nvlink, unsigned char *by_host)
{
    memcpy(by_host, comm->links.routes.streams->by_host, (size_t)comm->size);
    for (int r = 0; r < comm->size; r++) {
        const unsigned char *mine = places[comm->rank].uuid;
        int by_file = coll__gpu_file_nvlink(mine, places[r].uuid);

        nvlink[r] = by_file >= 0
                        ? (unsigned char)by_file
                        : (unsigned char)coll__cuda_has_nvlink(
                              device, coll__cuda_number_of(places[r].uuid));
    }
}

static int is_far(const struct meeting *m, int i, int j)
{
    return m->peers[i].host != m->peers[j].host;
}

/* GPUs that do not reach each other get the largest distance. */
static void find_near(struct meeting *m, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            m->near[i * n + j] = is_far(m, i, j) || m->by_host[i * n + j]
                                     ? NEAR_HOST
                                     : (unsigned char)coll__gpu_near(
                                           m->places, n, m->nvlink, i, j);
}

static int meet(struct coll_comm *comm, struct meeting *m)
{
    struct coll__gpu_place mine = {.numa = -1};
    size_t n = (size_t)comm->size;
    int device = -1, rc = describe(&mine, &device);
    unsigned char *rows = calloc(n, 2);

    if (rc == COLL_OK && !rows) {
        log_error("comm", "no memory for the GPUs of %zu ranks", n);
        rc = COLL_ERR_NOMEM;
    }
    if (rc == COLL_OK)
        rc = coll__comm_exchange(comm, &mine, sizeof(mine), m->places);
    if (rc == COLL_OK) {
        find_links(comm, device, m->places, rows, rows + n);
        rc = coll__comm_exchange(comm, rows, n, m->nvlink);
    }
    if (rc == COLL_OK)
        rc = coll__comm_exchange(comm, rows + n, n, m->by_host);
    free(rows);
    if (rc == COLL_OK)
        find_near(m, comm->size);
    return rc;
}

/* ---- the view -------------------------------------------------------------- */

/* Return the largest number of ranks on one GPU. */
static int count_sharers(const struct meeting *m, int n)
{
    int most = 1;

    for (int i = 0; i < n; i++) {
        int here = 0;

        for (int j = 0; j < n; j++)
            here += m->near[i * n + j] == NEAR_GPU;
        most = max_int(most, here);
    }
    return most;
}

/* Return the price of a message between two ranks.  Between hosts the copies to and from
 * the host's memory overlap with the network's part, but for the first slot. */
static struct coll__gpu_price price_of(const struct meeting *m, int i, int j)
{
    enum coll__near near = (enum coll__near)m->near[i * m->n + j];
    struct coll__gpu_price price =
        coll__gpu_price(near, &m->places[i], &m->places[j]);

    if (near == NEAR_GPU)
        price.beta = price.share = price.beta * m->n_sharers;
    if (!is_far(m, i, j))
        return price;
    price.alpha = 2 * price.alpha + m->network.alpha;
    price.beta = max_double(price.beta, m->network.beta);
    price.share = max_double(price.share, m->network.share);
    price.gap = max_double(price.gap, m->network.gap);
    return price;
}

/* Find the highest price of a message between two ranks of one group (color NULL: any
 * two) that are in different groups of the level below (NULL: any).  Ranks of one GPU
 * share its memory's bandwidth. */
static void price_level(const struct meeting *m, const int *color,
                        const int *below, struct coll__level *level)
{
    enum coll__near farthest = NEAR_GPU;
    int n = m->n, leaves_host = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            enum coll__near near = (enum coll__near)m->near[i * n + j];
            struct coll__gpu_price price;

            if ((color && color[i] != color[j]) ||
                (below && below[i] == below[j]))
                continue;
            price = price_of(m, i, j);
            level->alpha = max_double(level->alpha, price.alpha);
            level->beta = max_double(level->beta, price.beta);
            level->share = max_double(level->share, price.share);
            level->gap = level->overhead = price.gap;
            farthest = near > farthest ? near : farthest;
            leaves_host |= is_far(m, i, j);
        }
    if (leaves_host) {
        level->both = m->network.both;
        level->spread = m->network.spread;
    }
    snprintf(level->name, sizeof(level->name), "%s",
             leaves_host ? "network" : names[farthest]);
}

/* Add the level of these groups, unless it is of no use; returns the number of levels. */
static int add_level(const struct meeting *m, int n_levels, const int **color)
{
    int *mine = m->colors + (size_t)n_levels * (size_t)m->n;

    if (!coll__view_is_level(mine, n_levels ? color[n_levels - 1] : NULL, m->n))
        return n_levels;
    color[n_levels] = mine;
    return n_levels + 1;
}

/* Name the lowest rank of each rank's host. */
static void color_hosts(const struct meeting *m, int *color)
{
    for (int i = 0; i < m->n; i++)
        for (color[i] = 0; is_far(m, color[i], i);)
            color[i]++;
}

/* Find the groups that make levels, from the inside out; returns their number. */
static int find_levels(const struct meeting *m, const int **color)
{
    int n_levels = 0;

    for (int near = NEAR_GPU; near < NEAR_HOST; near++) {
        coll__gpu_color((enum coll__near)near, m->near, m->n,
                        m->colors + (size_t)n_levels * (size_t)m->n);
        n_levels = add_level(m, n_levels, color);
    }
    if (m->n_hosts == 1)
        return n_levels;
    color_hosts(m, m->colors + (size_t)n_levels * (size_t)m->n);
    return add_level(m, n_levels, color);
}

static int make_view(struct coll__view *view, struct meeting *m, size_t chunk)
{
    const int *color[COLL__N_NEAR];
    int n_levels = find_levels(m, color);
    int rc = coll__view_init(view, m->n, n_levels + 1, color);

    if (rc)
        return rc;
    view->gamma = GAMMA * m->n_sharers;
    view->chunk = chunk;
    for (int l = 0; l <= n_levels; l++)
        price_level(m, l < n_levels ? color[l] : NULL, l ? color[l - 1] : NULL,
                    &view->levels[l]);
    memcpy(m->ring, view->ring, (size_t)m->n * sizeof(*m->ring));
    if (m->n_hosts == 1 && coll__gpu_ring(m->near, m->n, m->ring))
        rc = coll__view_set_ring(view, m->ring);
    if (rc)
        coll__view_fini(view);
    return rc;
}

static void log_view(const struct coll__view *view)
{
    char text[200] = "";
    size_t len = 0;

    for (int i = 0; i < view->nranks && len < sizeof(text) - 12; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %d",
                                view->ring[i]);
    log_info("comm", "GPUs: ring%s%s", text,
             len < sizeof(text) - 12 ? "" : " ...");
    for (int l = 0; l < view->n_levels; l++)
        log_info("comm", "GPUs, %s (%d): alpha %.2g us, beta %.2g ns/B",
                 view->levels[l].name, view->levels[l].n_groups,
                 view->levels[l].alpha * 1e6, view->levels[l].beta * 1e9);
}

int coll__comm_gpus_meet(struct coll_comm *comm)
{
    struct meeting m = {
        .n = comm->size, .n_hosts = comm->n_hosts, .peers = comm->peers};
    int rc = meeting_init(&m, comm->size);

    if (comm->n_hosts > 1)
        m.network = comm->view.levels[comm->view.n_levels - 1];
    if (rc == COLL_OK)
        rc = meet(comm, &m);
    if (rc == COLL_OK)
        m.n_sharers = count_sharers(&m, comm->size);
    if (rc == COLL_OK)
        rc = make_view(&comm->stream->gpu_view, &m, comm->settings.chunk);
    if (rc == COLL_OK && !comm->rank)
        log_view(&comm->stream->gpu_view);
    meeting_fini(&m);
    return rc;
}

/* ---- this machine ------------------------------------------------------------ */

static int describe_all(struct coll__topo *topo, struct coll__gpu_seen *seen,
                        unsigned char *nvlink, int n)
{
    int rc = COLL_OK;

    for (int i = 0; i < n && rc == COLL_OK; i++) {
        struct coll__cuda_gpu gpu;

        rc = coll__cuda_describe(i, &gpu);
        if (rc)
            break;
        memcpy(seen[i].uuid, gpu.uuid, sizeof(gpu.uuid));
        snprintf(seen[i].bus, sizeof(seen[i].bus), "%s", gpu.bus);
        snprintf(seen[i].name, sizeof(seen[i].name), "%s", gpu.name);
        seen[i].nvlink = coll__gpu_nvlink_rate(gpu.major);
        for (int j = 0; j < n; j++)
            nvlink[i * n + j] = (unsigned char)coll__cuda_has_nvlink(i, j);
    }
    return rc ? rc : coll__topo_add_gpus(topo, seen, n, nvlink);
}

int coll__gpus_describe(struct coll__topo *topo)
{
    int n = coll__cuda_count(), rc;
    struct coll__gpu_seen *seen;
    unsigned char *nvlink;

    if (!n)
        return COLL_OK;
    seen = calloc((size_t)n, sizeof(*seen));
    nvlink = calloc((size_t)n, (size_t)n);
    if (seen && nvlink) {
        rc = describe_all(topo, seen, nvlink, n);
    } else {
        log_error("topo", "no memory for the list of %d GPUs", n);
        rc = COLL_ERR_NOMEM;
    }
    free(seen);
    free(nvlink);
    return rc;
}
