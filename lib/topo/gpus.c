/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus.c - GPUs of a host: distances, prices, groups and rings.  Only gpus_read.c reads
 * files. */
#include "lib/topo/gpus.h"
#include "lib/util/util.h"

#include <string.h>

/* ---- how near ------------------------------------------------------------ */

enum coll__near coll__gpu_near(const struct coll__gpu_place *places, int n,
                               const unsigned char *nvlink, int i, int j)
{
    const struct coll__gpu_place *a = &places[i], *b = &places[j];

    if (!memcmp(a->uuid, b->uuid, sizeof(a->uuid)))
        return NEAR_GPU;
    if (nvlink[i * n + j] || nvlink[j * n + i])
        return NEAR_NVLINK;
    /* only a switch has two devices below one bridge */
    if (a->n_above && b->n_above && a->above[0] == b->above[0])
        return NEAR_SWITCH;
    return a->numa >= 0 && a->numa == b->numa ? NEAR_SOCKET : NEAR_HOST;
}

/* ---- prices -------------------------------------------------------------- */

/* Time of an 8-byte copy, a flag write and a wait for the flag, between two streams: half
 * of the round trip on an H100, measured in one process and in two processes that share
 * one GPU (tests/gpu/reports, "round trip within streams").  Longer paths add what NCCL
 * assumes for a hop (tuning.cc). */
#define ALPHA 8e-6
#define ALPHA_TURNS 145e-6
/* Time in the sender's stream: the wait for a slot, the copy and the flag (same
 * report). */
#define GAP 8.3e-6
static const double farther[COLL__N_NEAR] = {[NEAR_NVLINK] = 0.6e-6,
                                             [NEAR_SWITCH] = 1.0e-6,
                                             [NEAR_SOCKET] = 1.3e-6,
                                             [NEAR_HOST] = 1.8e-6};

#define GPU_COPY 1.4e12 /* bytes a second within an H100 (same report) */
#define PCIE 22e9 /* if the slot's speed is unknown: 16 lanes of PCIe 4 */
#define BETWEEN_SOCKETS 20e9

/* UCX assumes the same (cuda_ipc_iface.c). */
double coll__gpu_nvlink_rate(int major)
{
    return major >= 10  ? 800e9
           : major == 9 ? 400e9
           : major == 8 ? 300e9
                        : 250e9;
}

static double pcie_rate(const struct coll__gpu_place *place)
{
    return place->pcie > 0 ? place->pcie : PCIE;
}

static double rate_of(enum coll__near near, const struct coll__gpu_place *a,
                      const struct coll__gpu_place *b)
{
    double pcie = min_double(pcie_rate(a), pcie_rate(b));

    switch (near) {
    case NEAR_GPU:
        return GPU_COPY;
    case NEAR_NVLINK:
        return coll__gpu_nvlink_rate(a->major < b->major ? a->major : b->major);
    case NEAR_HOST:
        return min_double(pcie, BETWEEN_SOCKETS);
    default:
        return pcie;
    }
}

struct coll__gpu_price coll__gpu_price(enum coll__near near,
                                       const struct coll__gpu_place *a,
                                       const struct coll__gpu_place *b)
{
    double beta = 1 / rate_of(near, a, b);
    int has_turns = near == NEAR_GPU && a->pid != b->pid;

    return (struct coll__gpu_price){.alpha = (has_turns ? ALPHA_TURNS : ALPHA) +
                                             farther[near],
                                    .beta = beta,
                                    .share = beta,
                                    .gap = GAP};
}

/* ---- groups -------------------------------------------------------------- */

static int root_of(const int *color, int r)
{
    while (color[r] != r)
        r = color[r];
    return r;
}

void coll__gpu_color(enum coll__near most, const unsigned char *near, int n,
                     int *color)
{
    for (int r = 0; r < n; r++)
        color[r] = r;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            int a = root_of(color, i), b = root_of(color, j);

            if (near[i * n + j] <= most && a != b)
                color[a > b ? a : b] = a < b ? a : b;
        }
    for (int r = 0; r < n; r++)
        color[r] = root_of(color, r);
}

/* ---- rings ---------------------------------------------------------------- */

enum {
    EXACT = 8,
    FEW = 1 << 10
}; /* FEW: more edges of one kind than a ring has */

/* One farther edge outweighs any number of nearer ones. */
static int64_t weight(const unsigned char *near, int n, int i, int j)
{
    int64_t w = 1;

    for (int k = 1; k < near[i * n + j]; k++)
        w *= FEW;
    return near[i * n + j] ? w : 0;
}

static int64_t length(const unsigned char *near, int n, const int *ring)
{
    int64_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += weight(near, n, ring[i], ring[(i + 1) % n]);
    return sum;
}

struct search {
    const unsigned char *near;
    int n;
    int at[EXACT], best[EXACT];
    int64_t least;
};

/* Try all paths that begin with the first k places; drop those that get no shorter. */
static void extend(struct search *s, int k, int64_t sum)
{
    if (sum >= s->least)
        return;
    if (k == s->n) {
        sum += weight(s->near, s->n, s->at[k - 1], s->at[0]);
        if (sum < s->least) {
            s->least = sum;
            memcpy(s->best, s->at, sizeof(s->best));
        }
        return;
    }
    for (int r = 1; r < s->n; r++) {
        int is_taken = 0;

        for (int i = 1; i < k; i++)
            is_taken |= s->at[i] == r;
        s->at[k] = r;
        if (!is_taken)
            extend(s, k + 1, sum + weight(s->near, s->n, s->at[k - 1], r));
    }
}

static void reverse(int *ring, int from, int to)
{
    for (; from < to; from++, to--) {
        int other = ring[from];

        ring[from] = ring[to];
        ring[to] = other;
    }
}

/* Reverse parts of the ring as long as that makes it shorter (2-opt). */
static void turn_parts(const unsigned char *near, int n, int *ring)
{
    int is_better = 1;

    while (is_better) {
        is_better = 0;
        for (int i = 1; i < n - 1; i++)
            for (int j = i + 1; j < n; j++) {
                int a = ring[i - 1], b = ring[i], c = ring[j];
                int d = ring[(j + 1) % n];

                if (d == a || weight(near, n, a, c) + weight(near, n, b, d) >=
                                  weight(near, n, a, b) + weight(near, n, c, d))
                    continue;
                reverse(ring, i, j);
                is_better = 1;
            }
    }
}

int coll__gpu_ring(const unsigned char *near, int n, int *ring)
{
    struct search s = {.near = near, .n = n, .least = length(near, n, ring)};
    int64_t before = s.least;

    if (n < 4)
        return 0; /* all rings are alike */
    if (n > EXACT) {
        turn_parts(near, n, ring);
        return length(near, n, ring) < before;
    }
    extend(&s, 1, 0); /* from rank 0 */
    if (s.least < before)
        memcpy(ring, s.best, (size_t)n * sizeof(*ring));
    return s.least < before;
}
