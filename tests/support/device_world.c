/* SPDX-License-Identifier: BSD-3-Clause */
/* device_world.c - a call twice: on buffers of the host and of the device. */
#include "tests/support/device_world.h"
#include "tests/support/parts.h"
#include "tests/support/work.h"
#include "lib/type/signature.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranks ------------------------------------------------------------------- */

static void open_once(void)
{
    fake_open();
    OK(cu.Init(0));
}

int device_join(struct device_rank *r, struct world_rank *me)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int n_devices = 0;

    pthread_once(&once, open_once);
    OK(cu.DeviceGetCount(&n_devices));
    fake_device(me->rank % n_devices);
    r->me = me;
    r->stream = fake_stream();
    r->comm = world_join(me);
    return r->comm == NULL;
}

int device_leave(struct device_rank *r)
{
    int rc = coll_comm_destroy(r->comm);

    OK(cu.StreamDestroy(r->stream));
    return rc != COLL_OK;
}

int device_fork(int size, world_fn *fn, void *arg)
{
    patient_timeout(30);
    return world_fork(size, fn, arg, 60);
}

int device_threads(int size, world_fn *fn, void *arg)
{
    patient_timeout(30);
    return world_threads(size, fn, arg, 60);
}

static char said[512]; /* of GPU buffers, by the log */

static void hear(enum coll_log_level level, const char *part, const char *line,
                 void *arg)
{
    (void)level, (void)part, (void)arg;
    if (strstr(line, "GPU buffers"))
        snprintf(said, sizeof(said), "%s", line);
}

void device_listen(void) { coll_set_log_handler(hear, NULL); }

const char *device_said(void) { return said; }

/* ---- memory ------------------------------------------------------------------ */

void *device_put(const void *bytes, size_t len)
{
    CUdeviceptr at = fake_memory(len ? len : 1);

    if (len)
        fake_put(at, bytes, len);
    return (void *)at;
}

void *device_get(const void *at, size_t len)
{
    void *bytes = malloc(len ? len : 1);

    if (len)
        OK(cu.MemcpyDtoH(bytes, (CUdeviceptr)at, len));
    return bytes;
}

int32_t *device_numbers(int first, size_t count)
{
    int32_t *numbers = calloc(count, sizeof(*numbers)), *device;

    for (size_t i = 0; i < count; i++)
        numbers[i] = first + (int)i;
    device = device_put(numbers, count * sizeof(*numbers));
    free(numbers);
    return device;
}

int device_holds(const int32_t *at, int first, int step, size_t count)
{
    int32_t *numbers = device_get(at, count * sizeof(*numbers));
    int is_so = 1;

    for (size_t i = 0; i < count; i++)
        is_so &= numbers[i] == first + (int)i * step;
    free(numbers);
    return is_so;
}

void device_launch(const struct device_rank *r, CUgraph graph, int n)
{
    CUgraphExec exec;

    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < n; i++)
        OK(cu.GraphLaunch(exec, r->stream));
    OK(cu.StreamSynchronize(r->stream));
}

/* ---- shapes ------------------------------------------------------------------ */

/* Elements that rank a has for rank b, or gives to all as a. */
static size_t count_of(const struct device_call *call, int a, int b)
{
    return call->count ? (call->count * (size_t)(1 + (a + 2 * b) % 3)) / 2 : 0;
}

static int is_v(enum coll_collective c)
{
    return c == COLL_ALLGATHERV || c == COLL_REDUCE_SCATTERV ||
           c == COLL_ALLTOALLV || c == COLL_GATHERV || c == COLL_SCATTERV;
}

/* Counts of each rank and displacements with gaps; elements up to the last. */
static size_t lay_out(size_t *numbers, int n, const size_t *counts,
                      int has_gaps)
{
    size_t at = 0;

    for (int q = 0; q < n; q++) {
        numbers[q] = counts[q];
        numbers[n + q] = at;
        at += counts[q] + (has_gaps ? 3 : 0);
    }
    return at;
}

static void lay_out_v(struct device_call *call, int n, int rank, size_t *in,
                      size_t *out)
{
    struct coll_args *args = &call->host;
    size_t counts[64], own = count_of(call, rank, 0);
    int is_root = args->root == rank;

    call->numbers = calloc(4 * (size_t)n, sizeof(size_t));
    for (int q = 0; q < n; q++)
        counts[q] = count_of(call, q, 0);
    *in = *out = own;
    switch (args->collective) {
    case COLL_ALLGATHERV:
    case COLL_GATHERV:
        if (args->collective == COLL_GATHERV) {
            args->count = own;
            *out = 0;
            if (!is_root)
                break;
        }
        *out = lay_out(call->numbers, n, counts, 1);
        args->out_counts = call->numbers;
        args->out_displs = call->numbers + n;
        break;
    case COLL_REDUCE_SCATTERV:
    case COLL_SCATTERV:
        args->count = own;
        if (args->collective == COLL_SCATTERV && !is_root) {
            *in = 0;
            break;
        }
        *in = lay_out(call->numbers, n, counts,
                      args->collective == COLL_SCATTERV);
        args->in_counts = call->numbers;
        if (args->collective == COLL_SCATTERV)
            args->in_displs = call->numbers + n;
        else
            args->count = 0;
        break;
    default: /* alltoallv */
        for (int q = 0; q < n; q++)
            counts[q] = count_of(call, rank, q);
        *in = lay_out(call->numbers, n, counts, 1);
        args->in_counts = call->numbers;
        args->in_displs = call->numbers + n;
        for (int q = 0; q < n; q++)
            counts[q] = count_of(call, q, rank);
        *out = lay_out(call->numbers + 2 * n, n, counts, 1);
        args->out_counts = call->numbers + 2 * n;
        args->out_displs = call->numbers + 3 * n;
    }
}

static void lay_out_plain(struct device_call *call, int n, int rank, size_t *in,
                          size_t *out)
{
    size_t one = call->count, all = one * (size_t)n;
    int is_root = call->host.root == rank;

    call->host.count = one;
    *in = *out = one;
    switch (call->host.collective) {
    case COLL_REDUCE:
        *out = is_root ? one : 0;
        break;
    case COLL_EXSCAN:
        *out = rank ? one : 0;
        break;
    case COLL_BROADCAST:
        *in = is_root ? one : 0;
        break;
    case COLL_ALLGATHER:
        *out = all;
        break;
    case COLL_GATHER:
        *out = is_root ? all : 0;
        break;
    case COLL_REDUCE_SCATTER:
        *in = all;
        break;
    case COLL_SCATTER:
        *in = is_root ? all : 0;
        break;
    case COLL_ALLTOALL:
        *in = *out = all;
        break;
    case COLL_BARRIER:
        *in = *out = call->host.count = 0;
        break;
    default:
        break;
    }
}

/* ---- buffers ----------------------------------------------------------------- */

/* Small whole numbers, so that sums and products are exact in any order. */
static void fill_numbers(enum coll_type type, unsigned char *at, size_t len,
                         unsigned seed)
{
    size_t size;

    type = part_of_type(type);
    size = coll_type_size(type);
    memset(at, 0, len);
    for (size_t i = 0; i < len / size; i++) {
        unsigned v = 1 + (unsigned)(i * 7 + seed) % 2;

        if (type == COLL_F32)
            ((float *)at)[i] = (float)v;
        else if (type == COLL_F64)
            ((double *)at)[i] = v;
        else if (type == COLL_F16) /* 1 or 2 */
            ((uint16_t *)at)[i] = v == 1 ? 0x3c00 : 0x4000;
        else if (type == COLL_BF16)
            ((uint16_t *)at)[i] = v == 1 ? 0x3f80 : 0x4000;
        else
            at[i * size] = (unsigned char)v;
    }
}

/* Where the rank's own part begins in the larger buffer, in elements. */
static size_t own_at(const struct device_call *call, int rank)
{
    const struct coll_args *args = &call->host;
    const size_t *displs =
        args->out_displs ? args->out_displs : args->in_displs;
    size_t at = 0;

    if (!is_v(args->collective))
        return (size_t)rank * call->count;
    if (displs)
        return displs[rank];
    for (int q = 0; q < rank; q++)
        at += args->in_counts[q];
    return at;
}

/* In place: the smaller buffer is a part of the larger one, or they are one. */
static void put_in_place(struct coll_args *args, const struct device_call *call,
                         size_t at)
{
    if (call->in_len == call->out_len)
        args->in = args->out;
    else if (call->in_len < call->out_len)
        args->in = (unsigned char *)args->out + at;
    else
        args->out = (unsigned char *)args->in + at;
}

void device_fit_op(struct coll_args *args)
{
    struct coll__op op = {.base = args->op};

    if (is_pair(args->type))
        args->op = args->op == COLL_MIN ? COLL_MINLOC : COLL_MAXLOC;
    else if (!coll__op_takes(&op, args->type) ||
             (args->op == COLL_AVG && coll__is_prefix(args->collective)))
        args->op = COLL_SUM;
}

int device_fill(const struct device_rank *r, struct device_call *call)
{
    struct coll_args *host = &call->host, *device = &call->device;
    size_t in, out, size = coll_type_size(host->type);
    int n = r->me->size, rank = r->me->rank, has_in;
    unsigned char *a, *b;

    host->size = sizeof(*host);
    if (is_v(host->collective))
        lay_out_v(call, n, rank, &in, &out);
    else
        lay_out_plain(call, n, rank, &in, &out);
    call->in_len = in * size;
    call->out_len = out * size;
    a = malloc(call->in_len + 1);
    b = malloc(call->out_len + 1);
    fill_numbers(host->type, a, call->in_len, (unsigned)rank);
    fill_numbers(host->type, b, call->out_len, (unsigned)rank + 1);
    *device = *host;
    device->stream = r->stream;
    host->in = a;
    host->out = b;
    if (!in || !out || host->collective == COLL_ALLTOALLV)
        call->in_place = 0;
    has_in = !call->in_place || in > out;
    device->in = has_in ? device_put(a, call->in_len) : NULL;
    device->out =
        !call->in_place || !has_in ? device_put(b, call->out_len) : NULL;
    if (!call->in_place)
        return 0;
    put_in_place(host, call, own_at(call, rank) * size);
    put_in_place(device, call, own_at(call, rank) * size);
    free(has_in ? b : a);
    return 0;
}

void device_refill(struct device_call *call, unsigned seed)
{
    int has_in = !call->in_place || call->in_len > call->out_len;
    void *host = has_in ? (void *)call->host.in : call->host.out;
    const void *device = has_in ? call->device.in : call->device.out;
    size_t len = has_in ? call->in_len : call->out_len;

    fill_numbers(call->host.type, host, len, seed);
    if (len)
        fake_put((CUdeviceptr)device, host, len);
}

static int same(const void *host, const void *device, size_t len)
{
    void *bytes = device_get(device, len);
    int is_same = !memcmp(host, bytes, len);

    free(bytes);
    return is_same;
}

int device_same(const struct device_call *call)
{
    return same(call->host.in, call->device.in, call->in_len) &&
           same(call->host.out, call->device.out, call->out_len);
}

/* In place one of the two is a part of the other. */
void device_free(const struct device_rank *r, struct device_call *call)
{
    int has_in = !call->in_place || call->in_len > call->out_len;
    int has_out = !call->in_place || !has_in;

    world_meet(r->me);
    if (has_in) {
        free((void *)call->host.in);
        OK(cu.MemFree((CUdeviceptr)call->device.in));
    }
    if (has_out) {
        free(call->host.out);
        OK(cu.MemFree((CUdeviceptr)call->device.out));
    }
    free(call->numbers);
    world_meet(r->me);
}

/* ---- calls ------------------------------------------------------------------- */

/* A call with factors: a request, which may be destroyed while a graph has its work. */
static int do_request(const struct coll_args *a, struct coll_comm *comm)
{
    struct coll_request *request;
    int rc = coll_request_create(a, comm, &request);

    if (rc)
        return rc;
    rc = coll_start(request);
    if (rc == COLL_OK)
        rc = coll_wait(request, 0);
    return rc ? rc : coll_request_destroy(request);
}

int device_do(const struct coll_args *a, struct coll_comm *comm)
{
    if (a->collective == COLL_SEND)
        return coll_send(a->in, a->count, a->type, a->root, comm, a->stream);
    if (a->collective == COLL_RECV)
        return coll_recv(a->out, a->count, a->type, a->root, comm, a->stream);
    return a->prescale != 0 || a->postscale != 0 ? do_request(a, comm)
                                                 : work_call_with(a, comm);
}
