/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs.c - RDMA devices and their ports by libibverbs.
 *
 * The only file that includes infiniband/verbs.h.  libibverbs is loaded, not linked: it
 * belongs to this host's drivers, and a host without RDMA need not have it.  A kernel
 * without RDMA, or a device that may not be opened, means no NIC, never an error.
 */
#include "lib/topo/machine.h"
#include "lib/topo/rails.h"
#include "lib/trace/log.h"
#include "lib/util/read.h"
#include "lib/util/util.h"

#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is used of libibverbs: X(name), without its prefix. */
#define VERBS_MAP(X)                                                           \
    X(get_device_list)                                                         \
    X(free_device_list)                                                        \
    X(open_device)                                                             \
    X(close_device)                                                            \
    X(query_device)                                                            \
    X(query_port)

static struct {
#define X(name) __typeof__(ibv_##name) *name;
    VERBS_MAP(X)
#undef X
    char fault[256]; /* why it could not be loaded; "" if it was */
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library stays loaded: UCX uses it, too. */
static void load(void)
{
    void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        snprintf(lib.fault, sizeof(lib.fault), "%s", dlerror());
        if (!access("/dev/infiniband", F_OK))
            log_warn("topo",
                     "RDMA devices are not used, because libibverbs cannot be "
                     "loaded: %s; install it (Debian: apt-get install "
                     "ibverbs-providers)",
                     lib.fault);
        return;
    }
#define X(name)                                                                \
    lib.name = (__typeof__(ibv_##name) *)dlsym(handle, "ibv_" #name);          \
    if (!lib.name)                                                             \
        snprintf(lib.fault, sizeof(lib.fault), "it has no ibv_" #name);
    VERBS_MAP(X)
#undef X
}

/* lane_gbits: the Gbit/s of payload on one lane, indexed by the number of the bit that
 * is set in active_speed (IBTA, PortInfo: LinkSpeedActive): SDR, DDR, QDR, FDR10, FDR,
 * EDR, HDR, NDR, XDR.  Up to QDR 8 of 10 bits are payload; an Ethernet card uses these
 * codes for 2.5 to 10 Gbit/s of payload.  The second table has the number of lanes,
 * indexed by the bit that is set in active_width. */
static const double lane_gbits[] = {2.5, 5, 10, 10, 13.64, 25, 50, 100, 200};
static const int n_lanes[] = {1, 4, 8, 12, 2};
#define LAST_8B10B 2 /* QDR */

static int lowest_bit(unsigned bits) { return bits ? __builtin_ctz(bits) : -1; }

double coll__verbs_gbits(unsigned speed, unsigned width, int is_ethernet)
{
    int code = lowest_bit(speed), lanes = lowest_bit(width);
    double gbits;

    if (code < 0 || code >= (int)ARRAY_LEN(lane_gbits) || lanes < 0 ||
        lanes >= (int)ARRAY_LEN(n_lanes))
        return 0;
    gbits = lane_gbits[code] * n_lanes[lanes];
    return code <= LAST_8B10B && !is_ethernet ? gbits * 0.8 : gbits;
}

static const char *state_of(const struct ibv_port_attr *port)
{
    static const char *const names[] = {
        [IBV_PORT_NOP] = "no change", [IBV_PORT_DOWN] = "down",
        [IBV_PORT_INIT] = "init",     [IBV_PORT_ARMED] = "armed",
        [IBV_PORT_ACTIVE] = "active", [IBV_PORT_ACTIVE_DEFER] = "deferred",
    };

    return port->state < ARRAY_LEN(names) ? names[port->state] : "unknown";
}

static int add_port(struct coll__topo *topo, struct ibv_context *context,
                    int number, const struct ifaddrs *all)
{
    struct coll__nic nic = {.is_rdma = 1, .port = number};
    struct ibv_port_attr port;

    memset(&port, 0, sizeof(port));
    if (lib.query_port(context, (uint8_t)number, (void *)&port))
        return COLL_OK;
    snprintf(nic.name, sizeof(nic.name), "%.31s", context->device->name);
    snprintf(nic.port_state, sizeof(nic.port_state), "%s", state_of(&port));
    nic.gbits = coll__verbs_gbits(port.active_speed, port.active_width,
                                  port.link_layer == IBV_LINK_LAYER_ETHERNET);
    nic.numa_node = (int)coll__read_number(context->device->ibdev_path,
                                           "device/numa_node", -1);
    coll__read_bus(context->device->ibdev_path, nic.bus);
    coll__port_fabric(context->device->ibdev_path, number, all, nic.fabric);
    return coll__topo_add_nic(topo, &nic);
}

static int add_device(struct coll__topo *topo, struct ibv_device *device,
                      const struct ifaddrs *all)
{
    struct ibv_context *context = lib.open_device(device);
    struct ibv_device_attr attr;
    int status = COLL_OK;

    if (!context) {
        log_debug("topo", "rdma device %s cannot be opened: %s", device->name,
                  strerror(errno));
        return COLL_OK;
    }
    if (!lib.query_device(context, &attr))
        for (int port = 1; port <= attr.phys_port_cnt && !status; port++)
            status = add_port(topo, context, port, all);
    lib.close_device(context);
    return status;
}

int coll__verbs_load(struct coll__topo *topo)
{
    int n = 0, status = COLL_OK;
    struct ibv_device **devices;
    struct ifaddrs *all = NULL;

    pthread_once(&once, load);
    if (lib.fault[0]) {
        log_debug("topo", "no rdma devices: %s", lib.fault);
        return COLL_OK;
    }
    devices = lib.get_device_list(&n);
    if (!devices) { /* ENOSYS: the kernel has no RDMA */
        log_debug("topo", "no rdma devices: %s", strerror(errno));
        return COLL_OK;
    }
    if (n && getifaddrs(&all))
        all = NULL;
    for (int i = 0; i < n && !status; i++)
        status = add_device(topo, devices[i], all);
    if (all)
        freeifaddrs(all);
    lib.free_device_list(devices);
    return status;
}
