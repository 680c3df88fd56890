/* SPDX-License-Identifier: BSD-3-Clause */
/* check_calls.c - checks calls for a device's stream, with one error sentence for each
 * mistake, and compares them with the other ranks' calls if COLL_CHECK asks for it.
 */
#include "lib/stream/check_calls.h"
#include "lib/comm/comm.h"
#include "lib/device/cuda_stage.h"
#include "lib/run/args.h"
#include "lib/stream/calls.h"
#include "lib/stream/programs.h"
#include "lib/stream/compare.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>

#define KNOWN 256   /* host addresses that are remembered */
#define ALIGNED 256 /* bytes; device memory begins at multiples of it */

/* ---- whose buffers --------------------------------------------------------- */

void coll__stream_look_for_devices(void)
{
    if (!atomic_load_explicit(&coll__device_is_here, memory_order_relaxed))
        coll__cuda_look();
}

/* Asking the driver costs some 100 ns, so addresses of plain host memory are remembered.
 * Addresses at which device memory may begin (cuMemAlloc aligns to 256 bytes) are not:
 * the driver may map it later where host pages were. */
static int is_devices(const void *ptr)
{
    static atomic_uintptr_t known[KNOWN];
    atomic_uintptr_t *at = &known[((uintptr_t)ptr >> 6) % KNOWN];

    if (!ptr ||
        atomic_load_explicit(at, memory_order_relaxed) == (uintptr_t)ptr)
        return 0;
    if (coll__cuda_whose(ptr, NULL) == WHOSE_DEVICES)
        return 1;
    if ((uintptr_t)ptr % ALIGNED)
        atomic_store_explicit(at, (uintptr_t)ptr, memory_order_relaxed);
    return 0;
}

int coll__stream_owns(const struct coll_args *args)
{
    return is_devices(args->in) || is_devices(args->out);
}

/* ---- judging ---------------------------------------------------------------- */

static const char *name_of(const struct coll_args *args)
{
    return coll_collective_name(args->collective);
}

/* A buffer is on the stream's device, or pinned host memory. */
static int check_owner(const struct coll_args *args, const char *which,
                       enum coll__whose whose, int device,
                       const struct coll__cuda_place *place)
{
    if (whose == WHOSE_NOBODYS) {
        log_error(
            "api",
            "%s: %s is no memory that CUDA knows: it was freed, or it "
            "is the host's and not pinned; with a stream pass memory of its "
            "GPU, or pin it (cudaHostRegister)",
            name_of(args), which);
        return COLL_ERR_INVALID;
    }
    if (whose == WHOSE_DEVICES && device != place->device) {
        log_error("api",
                  "%s: %s is memory of GPU %d and the stream is of GPU %d; "
                  "pass a stream of the buffer's GPU%s",
                  name_of(args), which, device, place->device,
                  args->stream == COLL__LEGACY_STREAM
                      ? " (NULL is of the current one: cudaSetDevice)"
                      : "");
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

/* Find out whose a call's BUF_IN or BUF_OUT is, and check that. */
static int check_buffer(struct coll__stream_call *call, enum coll__buf buf,
                        const struct coll__cuda_place *place)
{
    const struct coll_args *args = &call->args;
    struct coll__cuda_owner owner = {.id = 0};
    enum coll__whose whose;

    if (args->collective == COLL_BARRIER || !coll__problem_len(&call->pb, buf))
        return COLL_OK;
    whose = coll__cuda_whose(buf == BUF_IN ? args->in : args->out, &owner);
    call->is_host[buf] = whose == WHOSE_HOSTS;
    call->ids[buf] = whose == WHOSE_DEVICES ? owner.id : 0;
    return check_owner(args, buf == BUF_IN ? "in" : "out", whose, owner.device,
                       place);
}

static int check_buffers(struct coll__stream_call *call,
                         const struct coll__cuda_place *place)
{
    int rc = check_buffer(call, BUF_IN, place);

    if (rc || call->args.in != call->args.out ||
        !coll__problem_len(&call->pb, BUF_IN))
        return rc ? rc : check_buffer(call, BUF_OUT, place);
    call->is_host[BUF_OUT] = call->is_host[BUF_IN];
    call->ids[BUF_OUT] = call->ids[BUF_IN];
    return COLL_OK;
}

static int check_place(const struct coll_comm *comm,
                       const struct coll_args *args,
                       const struct coll__cuda_place *place)
{
    const struct coll__stream *s = comm->stream;

    if (s->stage && s->place.device != place->device) {
        log_error("api",
                  "%s: the stream is of GPU %d and the communicator's "
                  "operations are on GPU %d; make a communicator for each GPU",
                  name_of(args), place->device, s->place.device);
        return COLL_ERR_INVALID;
    }
    if (s->stage && s->place.ctx != place->ctx) {
        log_error("api",
                  "%s: the stream is of another CUDA context than the "
                  "communicator's operations; use the device's primary one",
                  name_of(args));
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

/* ---- resets ------------------------------------------------------------------ */

static int is_known(const struct coll__stream *s, uint64_t id)
{
    return id && s->known[id % KNOWN_BUFFERS] == id;
}

/* After a reset the context has the same handle, but the stage is no longer pinned. */
static int was_reset(const struct coll_comm *comm)
{
    const struct coll__stage *stage = comm->stream->stage;
    const struct coll__stream_tp *tp = comm->links.routes.streams;

    return (stage && coll__cuda_whose(stage->base, NULL) != WHOSE_HOSTS) ||
           (tp && tp->ops->was_reset(tp));
}

/* A reset frees all memory of the device.  So it is looked for only if the call has no
 * buffer that an earlier call had. */
static int check_reset(const struct coll_comm *comm,
                       const struct coll__stream_call *call,
                       const struct coll__cuda_place *place)
{
    struct coll__stream *s = comm->stream;

    if (is_known(s, call->ids[BUF_IN]) || is_known(s, call->ids[BUF_OUT]))
        return COLL_OK;
    if (was_reset(comm)) {
        log_error("api",
                  "%s: GPU %d was reset since the communicator was made; make "
                  "a new communicator after a reset",
                  name_of(&call->args), place->device);
        return COLL_ERR_INVALID;
    }
    for (int b = BUF_IN; b <= BUF_OUT; b++)
        if (call->ids[b])
            s->known[call->ids[b] % KNOWN_BUFFERS] = call->ids[b];
    return COLL_OK;
}

/* ---- judging a call ---------------------------------------------------------- */

int coll__stream_judge(struct coll_comm *comm, struct coll__stream_call *call,
                       const struct coll__cuda_place *place)
{
    const struct coll_args *args = &call->args;
    int rc = check_place(comm, args, place);

    if (rc == COLL_OK)
        rc = coll__args_check(args, comm, &call->pb);
    if (rc)
        return rc;
    call->op.base = call->pb.op;
    if (coll__reduces(args->collective))
        coll__op_for(args, comm->size, &call->op);
    rc = check_buffers(call, place);
    return rc ? rc : check_reset(comm, call, place);
}

static int judge(struct coll_comm *comm, struct coll__stream_call *call)
{
    struct coll__cuda_place place;
    int rc;

    call->args.stream = coll__stream_of(&call->args);
    rc = coll__cuda_enter(call->args.stream, &comm->stream->place, &place);
    if (rc)
        return rc;
    rc = coll__stream_judge(comm, call, &place);
    coll__cuda_leave();
    return rc;
}

int coll__stream_check(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll__stream_call call = {.args = *args};

    return judge(comm, &call);
}

/* ---- comparing -------------------------------------------------------------- */

/* Operations that pass through the host are compared there.  But if any rank's call may
 * go from GPU to GPU, all calls are compared here.  A message of a rank to itself is
 * checked with its whole batch, which has both its send and its receive. */
static int is_compared(const struct coll_comm *comm,
                       const struct coll_args *args)
{
    const struct coll__stream_tp *tp = comm->links.routes.streams;

    if (!comm->settings.is_checked || comm->size == 1)
        return 0;
    if (coll__is_p2p(args->collective))
        return tp && !coll__stream_carries(tp, args->root) &&
               args->root != comm->rank;
    return tp && !comm->stream->is_plain;
}

static int judge_to_compare(struct coll_comm *comm,
                            struct coll__stream_call *call, uint32_t *places)
{
    int rc = judge(comm, call);

    *places = 0;
    if (rc == COLL_OK && comm->links.routes.streams &&
        !coll__is_p2p(call->pb.collective))
        rc = coll__programs_digest(comm, call, places);
    return rc;
}

int coll__stream_compare(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request)
{
    struct coll__stream_call call = {.args = *args};
    uint32_t places;
    int rc;

    *request = NULL;
    if (!is_compared(comm, args))
        return COLL_OK;
    rc = judge_to_compare(comm, &call, &places);
    return rc ? rc
              : coll__compare_take(comm, &call.pb, &call.op, places, request);
}

/* A rank knows the places of its own buffers, and digests of the other ranks' places. */
static void tell_places(const struct coll_comm *comm,
                        const struct coll__stream_call *call)
{
    char why[COLL__TEXT_MAX], places[COLL__PLACES_TEXT];

    snprintf(why, sizeof(why), "%s", coll_last_error());
    coll__programs_places(comm, call, places);
    log_error("api", "%s; rank %d passes %s", why, comm->rank, places);
}

int coll__stream_compare_call(struct coll_comm *comm,
                              const struct coll_args *args)
{
    struct coll__stream_call call = {.args = *args};
    uint32_t places;
    int rc;

    if (!is_compared(comm, args))
        return COLL_OK;
    rc = judge_to_compare(comm, &call, &places);
    if (rc)
        return rc;
    rc = coll__compare_call(comm, &call.pb, &call.op, places);
    if (rc == COLL_ERR_MISMATCH && comm->links.routes.streams &&
        comm->links.routes.streams->regs && !coll__is_p2p(call.pb.collective))
        tell_places(comm, &call);
    return rc;
}
