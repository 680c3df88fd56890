/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_memory.c - memory that ranks on GPUs send from: the GPUs of other ranks read it in
 * place.
 *
 * That saves one of two copies of each message in the second half of an allreduce in place
 * (doc/gpu.md, "Registered buffers"), as registered user buffers do with NCCL.  Collectives
 * with counts, which ZeRO needs, read nothing in place.  Memory that not all ranks can
 * read is sent as any other.
 * Source: NCCL User Guide, "User Buffer Registration".
 */
#include "trainer/ddp.h"
#include "coll/coll.h"
#include "trainer/device.h"

void *ddp_alloc(const struct device *device, size_t len)
{
    void *at = NULL;

    if (!device->order.has_stream)
        return device->alloc(len);
    if (coll_mem_alloc_device(&at, len, -1))
        return NULL;
    device->zero(at, len);
    return at;
}

/* A communicator that has failed keeps its registered memory until the process ends. */
void ddp_release(const struct device *device, void *at)
{
    if (device->order.has_stream)
        coll_mem_free(at);
    else
        device->release(at);
}

int ddp__open_memory(struct ddp *d)
{
    int st;

    if (d->config.zero || !d->device->order.has_stream)
        return 0;
    st = coll_mem_register(d->comm, d->sent, d->sent_len);
    if (st == COLL_ERR_UNSUPPORTED || st == COLL_ERR_NOMEM)
        return 0;
    d->is_open = !ddp__check(d, st);
    return d->is_open ? 0 : -1;
}

/* A communicator that has failed keeps the memory until it is destroyed. */
void ddp__close_memory(struct ddp *d)
{
    if (d->is_open && !d->has_failed)
        d->is_open = ddp__check(d, coll_mem_deregister(d->comm, d->sent)) != 0;
    if (!d->is_open)
        ddp__release_packed(d);
}

void ddp__release_packed(struct ddp *d)
{
    if (d->packed)
        ddp_release(d->device, d->packed);
    d->packed = NULL;
}
