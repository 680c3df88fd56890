/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.c - buckets of gradients, and the few words that ranks exchange. */
#include "trainer/ddp.h"
#include "coll/coll.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/phase.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 32 /* of a bucket's packed gradients, in gradients */

/* ---- gradients ---- */

/* Return how many parts of a bucket ranks update, each its own. */
static size_t n_parts(const struct ddp *d)
{
    return d->config.zero ? (size_t)d->size : 1;
}

/* Return which parameters of a bucket rank r updates, without their place in
 * its state. */
static struct ddp_part part_of(const struct ddp *d, const struct ddp_bucket *b,
                               int r)
{
    size_t p = n_parts(d);
    size_t i = d->config.zero ? (size_t)r : 0;
    size_t from = b->count * i / p, end = b->count * (i + 1) / p;

    return (struct ddp_part){.first = b->first + from, .count = end - from};
}

/* With ZeRO the optimizer's state is in the order of the buckets; without it, in the
 * order of the parameters, as in a checkpoint. */
struct ddp_part ddp_part(const struct ddp *d, int i, int rank)
{
    struct ddp_part part = part_of(d, &d->buckets[i], rank);

    if (!d->config.zero)
        part.at = part.first;
    for (int k = 0; d->config.zero && k < i; k++)
        part.at += part_of(d, &d->buckets[k], rank).count;
    return part;
}

size_t ddp_n_own(const struct ddp *d, int rank)
{
    size_t n = 0;

    for (int i = 0; i < d->n_buckets; i++)
        n += part_of(d, &d->buckets[i], rank).count;
    return n;
}

size_t ddp_param_at(const struct ddp *d, size_t at)
{
    for (int i = 0; i < d->n_buckets; i++) {
        struct ddp_part part = ddp_part(d, i, d->rank);

        if (at - part.at < part.count)
            return part.first + (at - part.at);
    }
    return 0;
}

/* Return how many parameters of the bucket each rank updates; valid until the next
 * call. */
static const size_t *counts_of(struct ddp *d, const struct ddp_bucket *b)
{
    for (int r = 0; r < d->size; r++)
        d->counts[r] = part_of(d, b, r).count;
    return d->counts;
}

/* The counts stay valid until the next call. */
static struct coll_args average_args(struct ddp *d, const struct ddp_bucket *b)
{
    static const enum coll_type types[] = {
        [WIRE_F32] = COLL_F32, [WIRE_F16] = COLL_F16, [WIRE_BF16] = COLL_BF16};
    char *values = b->packed ? (char *)b->packed : (char *)b->gradients;
    struct coll_args args = {
        .size = sizeof(struct coll_args),
        .collective = COLL_ALLREDUCE,
        .type = types[d->config.wire],
        /* the average over one rank is its sum, which needs no further pass */
        .op = d->config.sums || d->size == 1 ? COLL_SUM : COLL_AVG,
        .in = values,
        .out = values,
        .count = b->count,
        .stream = d->device->order.exchange(),
        .background = d->config.overlap,
    };

    if (d->config.zero) {
        size_t from = part_of(d, b, d->rank).first - b->first;

        args.collective = COLL_REDUCE_SCATTERV;
        args.in_counts = counts_of(d, b);
        args.count = 0;
        args.out = values + from * coll_type_size(args.type);
    }
    return args;
}

static struct coll_args gather_args(struct ddp *d, const struct ddp_bucket *b)
{
    struct ddp_part own = part_of(d, b, d->rank);

    return (struct coll_args){
        .size = sizeof(struct coll_args),
        .collective = COLL_ALLGATHERV,
        .type = COLL_F32,
        .in = b->params + (own.first - b->first),
        .out = b->params,
        .out_counts = counts_of(d, b),
        .stream = d->device->order.exchange(),
        .background = d->config.overlap,
    };
}

static const struct ddp_bucket *largest_bucket(const struct ddp *d)
{
    const struct ddp_bucket *largest = &d->buckets[0];

    for (int i = 1; i < d->n_buckets; i++)
        if (d->buckets[i].count > largest->count)
            largest = &d->buckets[i];
    return largest;
}

/* It is a detail of the report: not to know it is no failure. */
static void name_algorithm(struct ddp *d)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args = average_args(d, largest_bucket(d));

    if (coll_plan_query(&args, d->comm, &info) == COLL_OK)
        snprintf(d->algo, sizeof(d->algo), "%.31s", info.algorithm);
}

static void cut_buckets(struct ddp *d, struct model *m)
{
    size_t at = model_n_params(m), end = at;

    for (int i = model_n_layers(m); i-- > 0;) {
        int may_close = d->n_buckets < DDP_MAX_BUCKETS - 1, is_full;

        at -= model_layer_params(m, i);
        is_full = may_close && (end - at) * sizeof(float) >=
                                   (d->n_buckets ? d->config.bucket_bytes
                                                 : d->config.first_bytes);
        if (at == end || (at > 0 && !is_full))
            continue;
        d->buckets[d->n_buckets++] = (struct ddp_bucket){
            .gradients = model_gradients(m) + at,
            .params = model_params(m) + at,
            .first = at,
            .count = end - at,
            .first_layer = i,
        };
        end = at;
    }
}

/* Return the numbers that there is memory for, at least one for each gradient. */
static size_t packed_count(const struct ddp_bucket *b)
{
    return (b->count / ALIGNMENT + 1) * ALIGNMENT;
}

static int alloc_packed(struct ddp *d)
{
    size_t n = 0;

    for (int i = 0; i < d->n_buckets; i++)
        n += packed_count(&d->buckets[i]);
    d->packed = ddp_alloc(d->device, n * sizeof(*d->packed));
    if (!d->packed)
        return train_fail("out of memory for %zu gradients of 16 bits; lower "
                          "--batch-size",
                          n);
    d->sent = d->packed;
    d->sent_len = n * sizeof(*d->packed);
    n = 0;
    for (int i = 0; i < d->n_buckets; i++) {
        d->buckets[i].packed = d->packed + n;
        n += packed_count(&d->buckets[i]);
    }
    return 0;
}

int ddp_make_buckets(struct ddp *d, struct model *m,
                     const struct ddp_config *config)
{
    d->config = *config;
    d->device = model_device(m);
    d->n_buckets = d->n_started = d->n_gathering = 0;
    cut_buckets(d, m);
    d->sent = model_gradients(m);
    d->sent_len = model_n_params(m) * sizeof(float);
    d->counts = calloc((size_t)d->size, sizeof(*d->counts));
    if (!d->counts)
        return train_fail("out of memory for %d ranks; use fewer", d->size);
    if (config->zero && largest_bucket(d)->count < (size_t)d->size)
        return train_refuse(
            "%zu parameters at most in a bucket have no part for "
            "each of %d ranks; leave --zero out",
            largest_bucket(d)->count, d->size);
    return config->wire == WIRE_F32 ? 0 : alloc_packed(d);
}

static int open_bucket(struct ddp *d, struct ddp_bucket *b)
{
    struct coll_args args = average_args(d, b);
    int st = ddp__check(d, coll_request_create(&args, d->comm, &b->request));

    if (st || !d->config.zero)
        return st;
    args = gather_args(d, b);
    return ddp__check(d, coll_request_create(&args, d->comm, &b->gather));
}

int ddp_open_buckets(struct ddp *d)
{
    if (ddp__open_memory(d))
        return -1;
    for (int i = 0; i < d->n_buckets; i++)
        if (open_bucket(d, &d->buckets[i]))
            return -1;
    name_algorithm(d);
    return 0;
}

/* Start a request of bucket i that sees all that the device was given before.  If the device
 * has failed, only this rank is to end, so the others' communicator is left alone. */
static int start_request(struct ddp *d, int i, struct coll_request *request,
                         const char *what)
{
    struct phase_span span;
    int st;

    if (d->device->order.well())
        return -1;
    d->device->order.exchange();
    span = phase_begin_exchange(d->log, i, what);
    st = ddp__check(d, coll_start(request));
    phase_end(d->log, span);
    return st;
}

static int start_bucket(struct ddp *d, int i)
{
    struct ddp_bucket *b = &d->buckets[i];

    if (b == largest_bucket(d)) /* in which no rank's part is empty */
        d->device->spoil(d->config.score, b->gradients, b->count, n_parts(d));
    if (b->packed)
        d->device->pack(d->config.wire, b->gradients, b->packed, b->count);
    d->bytes += b->count * (b->packed ? sizeof(*b->packed) : sizeof(float));
    return start_request(d, i, b->request,
                         d->config.zero ? "REDUCESCATTER" : "ALLREDUCE");
}

static int start_until(struct ddp *d, int layer)
{
    while (d->n_started < d->n_buckets &&
           d->buckets[d->n_started].first_layer >= layer)
        if (start_bucket(d, d->n_started++))
            return -1;
    return 0;
}

int ddp_layer_done(struct ddp *d, int layer)
{
    struct phase_span span;
    int st;

    if (!d->config.overlap)
        return 0;
    if (d->device->is_async) /* it goes on computing */
        return start_until(d, layer);
    span = phase_begin(d->log, PHASE_COMM);
    st = start_until(d, layer);
    phase_end(d->log, span);
    return st;
}

static void unpack(const struct ddp *d, struct ddp_bucket *b)
{
    struct ddp_part own = part_of(d, b, d->rank);
    size_t from = own.first - b->first;

    d->device->unpack(d->config.wire, b->packed + from, b->gradients + from,
                      own.count);
}

/* What follows sees the request's results; and the host waits for them, unless they are
 * recorded. */
static int wait_for(const struct ddp *d, struct coll_request *request)
{
    int failed = d->is_recorded ? 0 : coll_wait(request, 0);

    d->device->order.exchanged();
    return failed;
}

/* Wait for all buckets that were started, also after one has failed: only then
 * does nothing use the gradients any more. */
static int wait_for_buckets(struct ddp *d)
{
    int st = 0;

    for (int i = 0; i < d->n_started; i++) {
        struct ddp_bucket *b = &d->buckets[i];
        int failed = wait_for(d, b->request);

        if (!st && failed)
            st = ddp__check(d, failed);
        if (!st && b->packed)
            unpack(d, b);
    }
    d->n_started = 0;
    return st;
}

/* What the device still computes is waited for first, so that its errors are found before
 * ranks wait for each other. */
int ddp_average(struct ddp *d)
{
    struct phase_span span = phase_begin(d->log, PHASE_COMM);
    int st = d->is_recorded ? 0 : d->device->order.wait();

    if (!st)
        st = start_until(d, 0);

    if (wait_for_buckets(d))
        st = -1;
    phase_end(d->log, span);
    return st;
}

const float *ddp_canary(const struct ddp *d)
{
    const struct ddp_bucket *b = largest_bucket(d);
    struct ddp_part part = part_of(d, b, d->rank);

    return b->gradients + (part.first - b->first) + part.count - 1;
}

/* ---- parameters, with ZeRO ---- */

int ddp_part_moved(struct ddp *d, int i)
{
    struct phase_span span;
    int st;

    if (!d->config.zero)
        return 0;
    span = phase_begin(d->log, PHASE_COMM);
    if (d->n_gathering <= i)
        d->n_gathering = i + 1;
    st = start_request(d, i, d->buckets[i].gather, "ALLGATHER");
    d->device->order.mark(i);
    phase_end(d->log, span);
    return st;
}

/* What follows sees the parameters of bucket i.  The host waits for them only if they are in
 * its memory. */
static int await_gather(struct ddp *d, int i)
{
    if (!d->device->order.has_stream)
        return ddp__check(d, coll_wait(d->buckets[i].gather, 0));
    d->device->order.see(i);
    return 0;
}

/* Return 1 if parameters of the layers up to this one are being gathered. */
static int is_gathering(const struct ddp *d, int layer)
{
    return d->n_gathering > 0 &&
           d->buckets[d->n_gathering - 1].first_layer <= layer;
}

int ddp_await(struct ddp *d, int layer)
{
    struct phase_span span;
    int st = 0;

    if (!is_gathering(d, layer))
        return 0;
    span = phase_begin(d->log, PHASE_COMM);
    while (is_gathering(d, layer))
        if (await_gather(d, --d->n_gathering))
            st = -1;
    phase_end(d->log, span);
    return st;
}

int ddp_await_all(struct ddp *d) { return ddp_await(d, INT_MAX); }

void ddp_record(struct ddp *d, int is_recorded)
{
    d->is_recorded = is_recorded;
    d->n_started = d->n_gathering = 0;
}

int ddp_well(struct ddp *d)
{
    return d->device->is_async ? ddp__check(d, coll_comm_async_error(d->comm))
                               : 0;
}

void ddp_drop_buckets(struct ddp *d)
{
    wait_for_buckets(d);
    ddp_await_all(d);
    if (d->n_buckets) /* requests that run stay */
        d->device->order.wait();
    for (int i = 0; i < d->n_buckets; i++) {
        coll_request_destroy(d->buckets[i].request);
        coll_request_destroy(d->buckets[i].gather);
    }
    ddp__close_memory(d);
    free(d->counts);
    d->counts = NULL;
    d->n_buckets = 0;
}

/* ---- floats of the device ---- */

/* Return when a collective in the device's stream has ended: 0, or -1 with train_error()
 * set. */
static int settle(struct ddp *d, int status)
{
    if (ddp__check(d, status) || !d->device->is_async)
        return status ? -1 : 0;
    d->device->order.exchanged();
    if (d->device->order.wait())
        return -1;
    return ddp_well(d);
}

int ddp_collect(struct ddp *d, const float *own, float *whole)
{
    for (int i = 0; i < d->n_buckets; i++) {
        struct ddp_part part = ddp_part(d, i, d->rank);
        float *out = d->rank == 0 ? whole + d->buckets[i].first : NULL;

        if (settle(d, coll_gatherv(own + part.at, part.count, out,
                                   counts_of(d, &d->buckets[i]), NULL, COLL_F32,
                                   0, d->comm, d->device->order.exchange())))
            return -1;
    }
    return 0;
}

int ddp_spread(struct ddp *d, const float *whole, float *own)
{
    for (int i = 0; i < d->n_buckets; i++) {
        struct ddp_part part = ddp_part(d, i, d->rank);
        const float *in = d->rank == 0 ? whole + d->buckets[i].first : NULL;

        if (settle(d, coll_scatterv(in, counts_of(d, &d->buckets[i]), NULL,
                                    own + part.at, part.count, COLL_F32, 0,
                                    d->comm, d->device->order.exchange())))
            return -1;
    }
    return 0;
}

int ddp_share_floats(struct ddp *d, float *values, size_t n, int root)
{
    return settle(d, coll_broadcast(values, values, n, COLL_F32, root, d->comm,
                                    d->device->order.exchange()));
}

int ddp_pass_on(struct ddp *d, const float *values, size_t n, float *before,
                size_t n_before)
{
    int next = (d->rank + 1) % d->size;
    int last = (d->rank + d->size - 1) % d->size;
    void *stream = d->device->order.exchange();

    if (ddp__check(d, coll_group_start()))
        return -1;
    if (ddp__check(d, coll_send(values, n, COLL_F32, next, d->comm, stream)) ||
        ddp__check(
            d, coll_recv(before, n_before, COLL_F32, last, d->comm, stream))) {
        coll_group_end();
        return -1;
    }
    return settle(d, coll_group_end());
}

int ddp_sum_one(struct ddp *d, double *value)
{
    void *stream = d->device->order.exchange();
    int st = ddp__check(d, coll_allreduce(value, value, 1, COLL_F64, COLL_SUM,
                                          d->comm, stream));

    d->device->order.exchanged();
    return st;
}

/* ---- words ---- */

int ddp_compare_words(struct ddp *d, const uint64_t *words, size_t n,
                      size_t *differs)
{
    uint64_t *both = malloc(2 * n * sizeof(*both));
    int st;

    if (!both)
        return train_fail(
            "out of memory to compare %zu numbers; use fewer ranks on "
            "this machine",
            n);
    for (size_t i = 0; i < n; i++) {
        both[i] = words[i];
        both[n + i] = ~words[i];
    }
    st = ddp__check(d, coll_allreduce(both, both, 2 * n, COLL_U64, COLL_MAX,
                                      d->comm, NULL));
    *differs = 0;
    while (!st && *differs < n && both[*differs] == ~both[n + *differs])
        ++*differs;
    free(both);
    return st;
}

int ddp_share_words(struct ddp *d, uint64_t *words, size_t n)
{
    return ddp_share_bytes(d, words, n * sizeof(*words), 0);
}

int ddp_share_bytes(struct ddp *d, void *bytes, size_t len, int root)
{
    return ddp__check(
        d, coll_broadcast(bytes, bytes, len, COLL_U8, root, d->comm, NULL));
}

int ddp_gather_bytes(struct ddp *d, const void *mine, void *all, size_t len)
{
    return ddp__check(d,
                      coll_allgather(mine, all, len, COLL_U8, d->comm, NULL));
}

int ddp_sum(struct ddp *d, double *values, size_t n)
{
    return ddp__check(d, coll_allreduce(values, values, n, COLL_F64, COLL_SUM,
                                        d->comm, NULL));
}

int ddp_max(struct ddp *d, double *values, size_t n)
{
    return ddp__check(d, coll_allreduce(values, values, n, COLL_F64, COLL_MAX,
                                        d->comm, NULL));
}

int ddp_agree(struct ddp *d, int status, int *failed)
{
    int32_t none = d->size * TRAIN_CAUSES, lowest = none;

    if (status)
        lowest = d->rank * TRAIN_CAUSES + (int32_t)train_cause();

    if (ddp__check(d, coll_allreduce(&lowest, &lowest, 1, COLL_I32, COLL_MIN,
                                     d->comm, NULL)))
        return -1;
    *failed = lowest < none ? lowest / TRAIN_CAUSES : -1;
    if (lowest < none && *failed != d->rank)
        train_fail_by((enum train_cause)(lowest % TRAIN_CAUSES),
                      "rank %d cannot go on", *failed);
    return 0;
}
