/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - devices: FAKE_CUDA_DEVICES of them, of FAKE_CUDA_MEMORY MiB each, of
 * which CUDA_VISIBLE_DEVICES shows some. */
#include "tests/fake_cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct device devices[MAX_DEVICES];
static int n_devices;

int device_count(void) { return n_devices; }

struct device *device_at(int i) { return &devices[i]; }

size_t device_memory(void)
{
    return (size_t)fake_setting("FAKE_CUDA_MEMORY", 16 << 10) << 20;
}

/* PG, "CUDA Environment Variables": numbers up to the first that is none. */
static void choose(const char *visible, int n_all)
{
    char *end;

    while (*visible && n_devices < MAX_DEVICES) {
        long number = strtol(visible, &end, 10);

        if (end == visible || number < 0 || number >= n_all)
            return;
        devices[n_devices++].number = (int)number;
        visible = *end == ',' ? end + 1 : end;
    }
}

CUresult device_init(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    long n_all = fake_setting("FAKE_CUDA_DEVICES", 1);

    n_devices = 0;
    if (visible)
        choose(visible, (int)n_all);
    else
        while (n_devices < n_all && n_devices < MAX_DEVICES) {
            devices[n_devices].number = n_devices;
            n_devices++;
        }
    return n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* The same for all processes of a machine, another one for each device. */
void device_uuid(int device, CUuuid *id)
{
    memcpy(id->bytes, "fake_cuda------", 16);
    id->bytes[15] = (char)(devices[device].number + 1);
}

int device_by_uuid(const CUuuid *id)
{
    for (int i = 0; i < n_devices; i++)
        if (devices[i].number + 1 == id->bytes[15])
            return i;
    return -1;
}

/* FAKE_CUDA_APART=0-1: these two. */
static int are_apart(int from, int to)
{
    const char *text = getenv("FAKE_CUDA_APART");
    int a, b;

    return text && sscanf(text, "%d-%d", &a, &b) == 2 &&
           ((from == a && to == b) || (from == b && to == a));
}

/* FAKE_CUDA_PEERS=0: no device reaches another. */
int device_peers(int from, int to)
{
    return from != to && fake_setting("FAKE_CUDA_PEERS", 1) != 0 &&
           !are_apart(devices[from].number, devices[to].number);
}

static CUresult check(CUdevice device)
{
    return device < 0 || device >= n_devices ? CUDA_ERROR_INVALID_DEVICE
                                             : CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
    CUresult rc = fault_of("cuInit");

    if (rc)
        return rc;
    return flags ? CUDA_ERROR_INVALID_VALUE : fake_init();
}

/* DA cuDriverGetVersion: one of the few that answer before cuInit. */
CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = (int)fake_setting("FAKE_CUDA_VERSION", FAKE_VERSION);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n)
{
    CUresult rc = fake_enter("cuDeviceGetCount", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!n)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *n = n_devices;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult rc = fake_enter("cuDeviceGet", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!device)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = check(ordinal);
    if (!rc)
        *device = ordinal;
    return fake_leave(rc);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    CUresult rc = fake_enter("cuDeviceGetName", IN_ERROR, NULL);

    if (rc)
        return rc;
    rc = name && len > 0 ? check(device) : CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        snprintf(name, (size_t)len, "fake_cuda %d", devices[device].number);
    return fake_leave(rc);
}

CUresult cuDeviceGetUuid(CUuuid *id, CUdevice device)
{
    CUresult rc = fake_enter("cuDeviceGetUuid", IN_ERROR, NULL);

    if (rc)
        return rc;
    rc = id ? check(device) : CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        device_uuid(device, id);
    return fake_leave(rc);
}

CUresult cuDeviceTotalMem(size_t *len, CUdevice device)
{
    CUresult rc = fake_enter("cuDeviceTotalMem", IN_ERROR, NULL);

    if (rc)
        return rc;
    rc = len ? check(device) : CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        *len = device_memory();
    return fake_leave(rc);
}

/* An address at which no machine has anything: the last domain. */
CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice device)
{
    CUresult rc = fake_enter("cuDeviceGetPCIBusId", IN_ERROR, NULL);

    if (rc)
        return rc;
    rc = text && len > 0 ? check(device) : CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        snprintf(text, (size_t)len, "FFFF:%02X:00.0", devices[device].number);
    return fake_leave(rc);
}

/* ---- attributes ---------------------------------------------------------- */

#define ATTRIBUTE(name) CU_DEVICE_ATTRIBUTE_##name

/* H100, init/attributes.  FAKE_CUDA_ATTRIBUTES=98=1,125=0 overrules these. */
static const struct {
    int name, value;
} attributes[] = {
    {ATTRIBUTE(MAX_THREADS_PER_BLOCK), 1024},
    {ATTRIBUTE(MAX_BLOCK_DIM_X), 1024},
    {ATTRIBUTE(MAX_BLOCK_DIM_Y), 1024},
    {ATTRIBUTE(MAX_BLOCK_DIM_Z), 64},
    {ATTRIBUTE(MAX_GRID_DIM_X), 0x7fffffff},
    {ATTRIBUTE(MAX_GRID_DIM_Y), 65535},
    {ATTRIBUTE(MAX_GRID_DIM_Z), 65535},
    {ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK), 48 << 10},
    {ATTRIBUTE(WARP_SIZE), 32},
    {ATTRIBUTE(MULTIPROCESSOR_COUNT), 132},
    {ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR), 2048},
    {ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR), 9},
    {ATTRIBUTE(COMPUTE_CAPABILITY_MINOR), 0},
    {ATTRIBUTE(INTEGRATED), 0},
    {ATTRIBUTE(CAN_MAP_HOST_MEMORY), 1},
    {ATTRIBUTE(COMPUTE_MODE), 0},
    {ATTRIBUTE(CONCURRENT_KERNELS), 1},
    {ATTRIBUTE(PCI_BUS_ID), 0},
    {ATTRIBUTE(PCI_DEVICE_ID), 0},
    {ATTRIBUTE(PCI_DOMAIN_ID), 0xffff},
    {ATTRIBUTE(L2_CACHE_SIZE), 50 << 20},
    {ATTRIBUTE(ASYNC_ENGINE_COUNT), 3},
    {ATTRIBUTE(UNIFIED_ADDRESSING), 1},
    {ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED), 1},
    {ATTRIBUTE(MANAGED_MEMORY), 0},
    {ATTRIBUTE(HOST_NATIVE_ATOMIC_SUPPORTED), 0},
    {ATTRIBUTE(PAGEABLE_MEMORY_ACCESS), 0},
    {ATTRIBUTE(CONCURRENT_MANAGED_ACCESS), 0},
    {ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM), 1},
    {92, 0}, /* of the first version of stream memory operations */
    {93, 0},
    {94, 0},
    {ATTRIBUTE(COOPERATIVE_LAUNCH), 1},
    {ATTRIBUTE(CAN_FLUSH_REMOTE_WRITES), 0},
    {ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1},
    {ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 1},
    {ATTRIBUTE(READ_ONLY_HOST_REGISTER_SUPPORTED), 1},
    {ATTRIBUTE(MEMORY_POOLS_SUPPORTED), 1},
    {ATTRIBUTE(GPU_DIRECT_RDMA_SUPPORTED), 0},
    {ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS), 1},
    {ATTRIBUTE(CAN_USE_STREAM_WAIT_VALUE_NOR), 1},
    {ATTRIBUTE(DMA_BUF_SUPPORTED), 0},
    {ATTRIBUTE(IPC_EVENT_SUPPORTED), 1},
    {ATTRIBUTE(HANDLE_TYPE_FABRIC_SUPPORTED), 0},
    {ATTRIBUTE(MULTICAST_SUPPORTED), 0},
    {133, 0}, /* MPS_ENABLED */
};

static int overruled(int name, int value)
{
    const char *text = getenv("FAKE_CUDA_ATTRIBUTES");

    while (text && *text) {
        int which, to;

        if (sscanf(text, "%d=%d", &which, &to) == 2 && which == name)
            value = to;
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    return value;
}

int device_attribute(int name)
{
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
        if (attributes[i].name == name)
            return overruled(name, attributes[i].value);
    return 0;
}

/* Numbers beyond the header's are INVALID_VALUE (H100); what is not listed is 0. */
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute name,
                              CUdevice device)
{
    CUresult rc = fake_enter("cuDeviceGetAttribute", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!value || name < 1 || name >= CU_DEVICE_ATTRIBUTE_MAX)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = check(device);
    if (!rc)
        *value = name == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID
                     ? devices[device].number
                     : device_attribute(name);
    return fake_leave(rc);
}

/* ---- peers --------------------------------------------------------------- */

/* DA cuDeviceCanAccessPeer; a device is none of its own (H100, init/peers). */
CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to)
{
    CUresult rc = fake_enter("cuDeviceCanAccessPeer", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (!can)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = check(from) ? check(from) : check(to);
    if (!rc)
        *can = device_peers(from, to);
    return fake_leave(rc);
}

/* DA cuDeviceGetP2PAttribute: two equal devices are INVALID_DEVICE, whatever is
 * asked. */
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute name,
                                 CUdevice from, CUdevice to)
{
    CUresult rc = fake_enter("cuDeviceGetP2PAttribute", IN_ERROR, NULL);

    if (rc)
        return rc;
    if (check(from) || check(to) || from == to)
        return fake_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!value)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    switch (name) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = 0;
        break;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        *value = device_peers(from, to);
        break;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: /* as on NVLink */
        *value =
            device_peers(from, to) && fake_setting("FAKE_CUDA_NVLINK", 0) != 0;
        break;
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 0;
        break;
    default:
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    return fake_leave(rc);
}
