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

/* GPUs that do not reach each other get the largest distance. */
static void find_near(struct meeting *m, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            m->near[i * n + j] = m->by_host[i * n + j]
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

/* Find the highest price of a message between two ranks of one group (color NULL: any
 * two) that are in different groups of the level below (NULL: any).  Ranks of one GPU
 * share its memory's bandwidth. */
static void price_level(const struct meeting *m, int n, const int *color,
                        const int *below, struct coll__level *level)
{
    enum coll__near farthest = NEAR_GPU;
    int sharers = count_sharers(m, n);

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            enum coll__near near = (enum coll__near)m->near[i * n + j];
            struct coll__gpu_price price;

            if ((color && color[i] != color[j]) ||
                (below && below[i] == below[j]))
                continue;
            price = coll__gpu_price(near, &m->places[i], &m->places[j]);
            if (near == NEAR_GPU)
                price.beta = price.share = price.beta * sharers;
            level->alpha = max_double(level->alpha, price.alpha);
            level->beta = max_double(level->beta, price.beta);
            level->share = max_double(level->share, price.share);
            level->gap = level->overhead = price.gap;
            farthest = near > farthest ? near : farthest;
        }
    snprintf(level->name, sizeof(level->name), "%s", names[farthest]);
}

/* Find the groups that make levels, from the inside out; returns their number. */
static int find_levels(const struct meeting *m, int n, const int **color)
{
    int n_levels = 0;

    for (int near = NEAR_GPU; near < NEAR_HOST; near++) {
        int *mine = m->colors + (size_t)n_levels * (size_t)n;

        coll__gpu_color((enum coll__near)near, m->near, n, mine);
        if (coll__view_is_level(mine, n_levels ? color[n_levels - 1] : NULL, n))
            color[n_levels++] = mine;
    }
    return n_levels;
}

static int make_view(struct coll__view *view, struct meeting *m, int n,
                     size_t chunk)
{
    const int *color[COLL__N_NEAR];
    int n_levels = find_levels(m, n, color);
    int rc = coll__view_init(view, n, n_levels + 1, color);

    if (rc)
        return rc;
    view->gamma = GAMMA * count_sharers(m, n);
    view->chunk = chunk;
    for (int l = 0; l <= n_levels; l++)
        price_level(m, n, l < n_levels ? color[l] : NULL,
                    l ? color[l - 1] : NULL, &view->levels[l]);
    memcpy(m->ring, view->ring, (size_t)n * sizeof(*m->ring));
    if (coll__gpu_ring(m->near, n, m->ring))
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
    struct meeting m;
    int rc = meeting_init(&m, comm->size);

    if (rc == COLL_OK)
        rc = meet(comm, &m);
    if (rc == COLL_OK)
        rc = make_view(&comm->stream->gpu_view, &m, comm->size,
                       comm->settings.chunk);
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
