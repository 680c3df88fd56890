/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c - network interfaces by the kernel's list, /sys/class/net.
 *
 * Interfaces without hardware (bridges, tunnels, containers' ends) are listed
 * while they are up; the loopback never is.
 */
#include "lib/topo/machine.h"
#include "lib/trace/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NET_DIR "/sys/class/net"
#define ARPHRD_LOOPBACK 772 /* linux/if_arp.h */

int coll__read_line(const char *dir, const char *name, char *line, size_t len)
{
    char path[512];
    FILE *file;
    int is_read;

    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
        return -1;
    file = fopen(path, "re");
    if (!file)
        return -1;
    is_read = fgets(line, (int)len, file) != NULL;
    fclose(file);
    if (!is_read)
        return -1;
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

long coll__read_number(const char *dir, const char *name, long otherwise)
{
    char line[64], *end;
    long value;

    if (coll__read_line(dir, name, line, sizeof(line)))
        return otherwise;
    errno = 0;
    value = strtol(line, &end, 0);
    return end == line || errno ? otherwise : value;
}

static int is_hardware(const char *dir)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/device", dir);
    return !access(path, F_OK);
}

static int add_interface(struct coll__topo *topo, const char *name)
{
    struct coll__nic nic = {.numa_node = -1};
    char dir[300], state[16] = "unknown";
    long mbits;

    snprintf(dir, sizeof(dir), NET_DIR "/%s", name);
    coll__read_line(dir, "operstate", state, sizeof(state));
    if (coll__read_number(dir, "type", ARPHRD_LOOPBACK) == ARPHRD_LOOPBACK ||
        (strcmp(state, "up") && !is_hardware(dir)))
        return COLL_OK;
    snprintf(nic.name, sizeof(nic.name), "%.31s", name);
    snprintf(nic.port_state, sizeof(nic.port_state), "%s", state);
    mbits = coll__read_number(dir, "speed", 0);
    nic.gbits = mbits > 0 ? (double)mbits / 1000 : 0;
    nic.numa_node = (int)coll__read_number(dir, "device/numa_node", -1);
    return coll__topo_add_nic(topo, &nic);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int coll__net_load(struct coll__topo *topo)
{
    struct dirent **entries;
    int status = COLL_OK, n = scandir(NET_DIR, &entries, not_hidden, alphasort);

    if (n < 0) {
        log_debug("topo", "no list of network interfaces: %s", strerror(errno));
        return COLL_OK;
    }
    for (int i = 0; i < n; i++) {
        if (!status)
            status = add_interface(topo, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}
