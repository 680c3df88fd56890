/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - the network of an RDMA device's port, from the kernel's files below
 * /sys/class/infiniband.
 *
 * InfiniBand: the network is the subnet's prefix, the first half of the port's first GID
 * (IBTA 4.1.1).  RoCE: the GIDs are the IP addresses of the network interface.  UCX
 * prefers one of IPv4 and RoCE v2, then one of IPv6, then RoCE v1; version 1 stays within
 * its Ethernet.
 */
#include "lib/topo/machine.h"
#include "lib/topo/rails.h"
#include "lib/util/read.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MAX_GIDS 64
#define USUAL_BITS 24 /* if the mask cannot be seen from here */

/* What a GID is worth to UCX. */
enum worth { WORTH_NONE, WORTH_V1, WORTH_LOCAL, WORTH_IP6, WORTH_IP4 };

static int read_gid(const char *dir, int index, unsigned char gid[16])
{
    char name[32], line[64];

    snprintf(name, sizeof(name), "gids/%d", index);
    return !coll__read_line(dir, name, line, sizeof(line)) &&
           inet_pton(AF_INET6, line, gid) == 1;
}

static enum worth worth_of(const char *dir, int index,
                           const unsigned char gid[16])
{
    static const unsigned char none[16], ip4[12] = {[10] = 0xff, [11] = 0xff};
    char name[48], type[32];

    snprintf(name, sizeof(name), "gid_attrs/types/%d", index);
    if (!memcmp(gid, none, sizeof(none)) ||
        coll__read_line(dir, name, type, sizeof(type)))
        return WORTH_NONE;
    if (strcmp(type, "RoCE v2") != 0)
        return WORTH_V1;
    if (!memcmp(gid, ip4, sizeof(ip4)))
        return WORTH_IP4;
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? WORTH_LOCAL : WORTH_IP6;
}

/* Return the length of the netmask of the interface with this address. */
static int mask_bits(const struct ifaddrs *all, struct in_addr addr)
{
    for (; all; all = all->ifa_next) {
        const struct sockaddr_in *at = (const void *)all->ifa_addr;
        const struct sockaddr_in *mask = (const void *)all->ifa_netmask;

        if (at && mask && at->sin_family == AF_INET &&
            at->sin_addr.s_addr == addr.s_addr)
            return __builtin_popcount(mask->sin_addr.s_addr);
    }
    return USUAL_BITS;
}

static void name_ip4(const unsigned char gid[16], const struct ifaddrs *all,
                     char fabric[COLL__FABRIC])
{
    char text[INET_ADDRSTRLEN];
    struct in_addr addr;
    int bits;

    memcpy(&addr, gid + 12, sizeof(addr));
    bits = mask_bits(all, addr);
    addr.s_addr &= bits ? htonl(UINT32_MAX << (32 - bits)) : 0;
    inet_ntop(AF_INET, &addr, text, sizeof(text));
    snprintf(fabric, COLL__FABRIC, "roce %s/%d", text, bits);
}

static void name_ip6(const unsigned char gid[16], char fabric[COLL__FABRIC])
{
    unsigned char net[16] = {0};
    char text[INET6_ADDRSTRLEN];

    memcpy(net, gid, 8);
    inet_ntop(AF_INET6, net, text, sizeof(text));
    snprintf(fabric, COLL__FABRIC, "roce %.40s/64", text);
}

static void name_roce(const char *dir, const struct ifaddrs *all,
                      char fabric[COLL__FABRIC])
{
    unsigned char gid[16], best[16] = {0};
    enum worth most = WORTH_NONE;

    for (int i = 0; i < MAX_GIDS && read_gid(dir, i, gid); i++) {
        enum worth worth = worth_of(dir, i, gid);

        if (worth <= most)
            continue;
        most = worth;
        memcpy(best, gid, sizeof(best));
    }
    if (most == WORTH_IP4)
        name_ip4(best, all, fabric);
    else if (most > WORTH_V1)
        name_ip6(best, fabric);
    else if (most)
        snprintf(fabric, COLL__FABRIC, "roce of version 1");
}

static void name_ib(const char *dir, char fabric[COLL__FABRIC])
{
    unsigned char gid[16];

    if (read_gid(dir, 0, gid))
        snprintf(fabric, COLL__FABRIC, "ib %x:%x:%x:%x", gid[0] << 8 | gid[1],
                 gid[2] << 8 | gid[3], gid[4] << 8 | gid[5],
                 gid[6] << 8 | gid[7]);
}

void coll__port_fabric(const char *device_dir, int port,
                       const struct ifaddrs *all, char fabric[COLL__FABRIC])
{
    char dir[PATH_MAX], layer[32], node[32] = "";

    *fabric = '\0';
    snprintf(dir, sizeof(dir), "%s/ports/%d", device_dir, port);
    coll__read_line(device_dir, "node_type", node, sizeof(node));
    if (strstr(node, "RNIC") || /* iWARP */
        coll__read_line(dir, "link_layer", layer, sizeof(layer)))
        return;
    if (!strcmp(layer, "InfiniBand"))
        name_ib(dir, fabric);
    else if (!strcmp(layer, "Ethernet"))
        name_roce(dir, all, fabric);
}
