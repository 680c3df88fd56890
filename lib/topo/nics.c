/* SPDX-License-Identifier: BSD-3-Clause */
/* nics.c - network interfaces from the kernel's list, /sys/class/net.
 *
 * Interfaces without hardware (bridges, tunnels, a container's veth) are listed while
 * they are up; the loopback never is.
 *
 * The speed is the driver's.  A bond's driver computes it from its cards; an interface on
 * top of a single other one (a VLAN) takes the speed of that interface.  Other virtual
 * interfaces have no speed: a veth reports 10 Gbit/s in any case.
 */
#include "lib/topo/machine.h"
#include "lib/trace/log.h"
#include "lib/util/read.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NET_DIR "/sys/class/net"
#define ARPHRD_LOOPBACK 772 /* linux/if_arp.h */
#define MAX_MBITS 10000000  /* drivers report a larger value for unknown */
#define MAX_STACK 4         /* interfaces on top of each other */

void coll__read_bus(const char *dir, char bus[16])
{
    char path[512], to[PATH_MAX], *name;
    unsigned domain, number, slot, function;
    ssize_t n = -1;

    *bus = '\0';
    if (snprintf(path, sizeof(path), "%s/device", dir) < (int)sizeof(path))
        n = readlink(path, to, sizeof(to) - 1);
    to[n > 0 ? n : 0] = '\0';
    name = strrchr(to, '/');
    if (name && sscanf(name, "/%4x:%2x:%2x.%1x", &domain, &number, &slot,
                       &function) == 4)
        snprintf(bus, 16, "%.15s", name + 1);
}

static int has_entry(const char *dir, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return !access(path, F_OK);
}

static int is_lower(const struct dirent *entry)
{
    return !strncmp(entry->d_name, "lower_", 6);
}

/* Find the name of the only interface below this one; 0 if there are none or several. */
static int find_lower(const char *dir, char *name, size_t len)
{
    struct dirent **entries;
    int n = scandir(dir, &entries, is_lower, alphasort);

    if (n < 0)
        return 0;
    if (n == 1)
        snprintf(name, len, "%s", entries[0]->d_name + 6);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return n == 1;
}

double coll__net_gbits(const char *net_dir, const char *name)
{
    char dir[300], at[64];
    long mbits;

    snprintf(at, sizeof(at), "%s", name);
    for (int i = 0; i < MAX_STACK; i++) {
        snprintf(dir, sizeof(dir), "%s/%s", net_dir, at);
        if (has_entry(dir, "device") || has_entry(dir, "bonding")) {
            mbits = coll__read_number(dir, "speed", 0);
            return mbits > 0 && mbits <= MAX_MBITS ? (double)mbits / 1000 : 0;
        }
        if (!find_lower(dir, at, sizeof(at)))
            return 0;
    }
    return 0;
}

/* Does /sys show the interfaces of this process?  A container may see the host's. */
static int is_ours(const char *net_dir, const char *dir, const char *name)
{
    return strcmp(net_dir, NET_DIR) != 0 ||
           coll__read_number(dir, "ifindex", 0) == (long)if_nametoindex(name);
}

static int add_interface(struct coll__topo *topo, const char *net_dir,
                         const char *name)
{
    struct coll__nic nic = {.numa_node = -1};
    char dir[300], state[16] = "unknown";

    snprintf(dir, sizeof(dir), "%s/%s", net_dir, name);
    coll__read_line(dir, "operstate", state, sizeof(state));
    if (coll__read_number(dir, "type", ARPHRD_LOOPBACK) == ARPHRD_LOOPBACK ||
        (strcmp(state, "up") && !has_entry(dir, "device")) ||
        !is_ours(net_dir, dir, name))
        return COLL_OK;
    snprintf(nic.name, sizeof(nic.name), "%.31s", name);
    snprintf(nic.port_state, sizeof(nic.port_state), "%s", state);
    nic.gbits = coll__net_gbits(net_dir, name);
    nic.numa_node = (int)coll__read_number(dir, "device/numa_node", -1);
    coll__read_bus(dir, nic.bus);
    return coll__topo_add_nic(topo, &nic);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int coll__net_load_from(struct coll__topo *topo, const char *net_dir)
{
    struct dirent **entries;
    int status = COLL_OK, n = scandir(net_dir, &entries, not_hidden, alphasort);

    if (n < 0) {
        log_debug("topo", "no list of network interfaces: %s", strerror(errno));
        return COLL_OK;
    }
    for (int i = 0; i < n; i++) {
        if (!status)
            status = add_interface(topo, net_dir, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

int coll__net_load(struct coll__topo *topo)
{
    return coll__net_load_from(topo, NET_DIR);
}
