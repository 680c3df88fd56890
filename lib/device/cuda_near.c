/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_near.c - a GPU's place on PCIe and its links to other GPUs, from the driver.
 * Source: CUDA Driver API, "Device Management". */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"

#include <stdio.h>
#include <string.h>

int coll__cuda_describe(int device, struct coll__cuda_gpu *out)
{
    static const CUdevice_attribute names[] = {
        CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR};
    const struct coll__cuda *cuda = coll__cuda_needed();
    int values[4] = {0};
    CUresult rc = CUDA_SUCCESS;
    CUuuid uuid;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    for (int i = 0; i < 4 && !rc; i++)
        rc = cuda->cuDeviceGetAttribute(&values[i], names[i], device);
    if (rc)
        return coll__cuda_status(rc, "cuDeviceGetAttribute");
    rc = cuda->cuDeviceGetUuid(&uuid, device);
    if (!rc)
        rc = cuda->cuDeviceGetName(out->name, sizeof(out->name), device);
    if (rc)
        return coll__cuda_status(rc, "cuDeviceGetUuid");
    memcpy(out->uuid, uuid.bytes, sizeof(out->uuid));
    out->major = values[3];
    snprintf(out->bus, sizeof(out->bus), "%04x:%02x:%02x.0", values[0] & 0xffff,
             values[1] & 0xff, values[2] & 0x1f);
    return COLL_OK;
}

/* GPUs joined by NVLink have native atomics on each other's memory; over PCIe they do
 * not. */
int coll__cuda_has_nvlink(int from, int to)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    int can = 0, atomics = 0;

    return cuda && from != to && from >= 0 && to >= 0 &&
           !cuda->cuDeviceGetP2PAttribute(
               &can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to) &&
           !cuda->cuDeviceGetP2PAttribute(
               &atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, from,
               to) &&
           can && atomics;
}

int coll__cuda_count(void)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    int n = 0;

    return cuda && !cuda->cuDeviceGetCount(&n) ? n : 0;
}
