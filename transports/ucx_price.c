/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_price.c - what a message to another host costs, by the network device that
 * UCX uses for it.
 *
 * UCX chooses the device of each endpoint when it makes the endpoint (UCX_NET_DEVICES,
 * UCX_TLS, active ports, nearness). ucp_ep_print_info() tells the choice.  Its lines for
 * lanes look the same in all releases that we build with:
 *
 *     lane[0]:  1:rc_mlx5/mlx5_0:1.0 md[4]   -> addr[0].md[4]/ib/...  am am_bw#0
 *
 * If no endpoint is connected yet (more ranks than the limit ucx_mesh), the choice is
 * predicted by the same rules.
 */
#include "transports/ucx_price.h"
#include "transports/price.h"
#include "transports/ucx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what UCX says ------------------------------------------------------- */

/* RDMA transports of UCX: rc_verbs, rc_mlx5, dc_mlx5, ud_verbs, ud_mlx5, ... */
static int is_rdma_name(const char *name)
{
    return !strncmp(name, "rc", 2) || !strncmp(name, "dc", 2) ||
           !strncmp(name, "ud", 2);
}

/* Read one line, such as "lane[0]: 1:tcp/eth0.0 md[1] ...". */
static int take_lane(const char *line, char device[32], int *is_rdma)
{
    const char *lane = strstr(line, "lane["), *colon, *end;
    char name[32], rest[80];
    int index;

    if (!lane || !(colon = strchr(lane, ']')) ||
        sscanf(colon, "]: %d:%31[^/ ]/%79s", &index, name, rest) != 3)
        return 0;
    *is_rdma = is_rdma_name(name);
    if (!*is_rdma && strcmp(name, "tcp") != 0) /* memory, self */
        return 0;
    end = strrchr(rest, '.'); /* the path of the device: ".0" */
    snprintf(device, 32, "%.*s", end ? (int)(end - rest) : (int)strlen(rest),
             rest);
    return 1;
}

int coll__ucx_lane(const char *text, char device[32], int *is_rdma)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        char copy[256];

        line += *line == '\n';
        snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(line, "\n"), line);
        if (take_lane(copy, device, is_rdma))
            return 1;
    }
    return 0;
}

static int ask(ucp_ep_h ep, char device[32], int *is_rdma)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    int found;

    if (!out)
        return 0;
    coll__ucx.ucp_ep_print_info(ep, out);
    found = !fclose(out) && coll__ucx_lane(text, device, is_rdma);
    free(text);
    return found;
}

/* ---- predicting the device ----------------------------------------------- */

/* Does UCX_TLS exclude RDMA?  It does if it lists only others, or excludes it by name. */
static int may_rdma(void)
{
    static const char *const kinds[] = {"all", "ib", "rc", "dc", "ud"};
    const char *names = getenv("UCX_TLS");

    if (!names || !*names)
        return 1;
    if (*names == '^')
        return !strstr(names, "ib");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strstr(names, kinds[i]))
            return 1;
    return 0;
}

static struct coll__carrier_wish wish_of(int numa_node)
{
    return (struct coll__carrier_wish){.devices = getenv("UCX_NET_DEVICES"),
                                       .may_rdma = may_rdma(),
                                       .numa_node = numa_node};
}

static const struct coll__nic *foresee(const struct coll__nic *nics, int n,
                                       int numa_node, enum coll__wire *wire)
{
    struct coll__carrier_wish wish = wish_of(numa_node);
    char route[32];

    coll__carrier_route(route, sizeof(route));
    wish.interface = route;
    return coll__carrier_guess(nics, n, &wish, wire);
}

/* ---- the price ----------------------------------------------------------- */

void coll__ucx_far(ucp_ep_h ep, int numa_node, struct coll__link *link)
{
    const struct coll__nic *nics, *nic;
    int n = coll__carriers(&nics), is_rdma;
    enum coll__wire wire;
    char device[32] = "";

    if (ep && ask(ep, device, &is_rdma)) {
        wire = is_rdma ? WIRE_RDMA : WIRE_TCP;
        nic = coll__carrier_named(nics, n, device);
    } else {
        nic = foresee(nics, n, numa_node, &wire);
    }
    coll__price_device(nic, wire, device, link);
}

/* If the kernel has no such device, there is nothing to search. */
void coll__ucx_fabrics(int numa_node, uint32_t fabrics[COLL__FABRICS])
{
    struct coll__carrier_wish wish = wish_of(numa_node);
    const struct coll__nic *nics = NULL;
    int n = 0;

    if (!access("/sys/class/infiniband", F_OK))
        n = coll__carriers(&nics);
    coll__rails_fabrics(nics, n, &wish, fabrics);
}

void coll__ucx_rails(int numa_node, uint32_t fabric, struct coll__rails *rails)
{
    struct coll__carrier_wish wish = wish_of(numa_node);
    const struct coll__nic *nics;
    int n = coll__carriers(&nics);

    coll__rails_choose(nics, n, &wish, fabric, rails);
}

void coll__ucx_note(char *note, size_t len)
{
    const struct coll__nic *nics, *nic;
    enum coll__wire wire;
    struct coll__link link;
    int n = coll__carriers(&nics);

    nic = foresee(nics, n, -1, &wire);
    coll__price_device(nic, wire, "", &link);
    coll__price_note(&link, note, len);
}
