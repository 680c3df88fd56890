/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - judge what callers pass, one sentence for each way to be wrong. */
#include "lib/api/comm.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <string.h>

#define MAX_STRUCT 4096 /* bytes; a larger size was never set */

int coll__struct_take(const void *theirs, void *ours, size_t len,
                      const char *name)
{
    const unsigned char *bytes = theirs;
    size_t size;

    memcpy(&size, theirs, sizeof(size));
    if (size < sizeof(size) || size > MAX_STRUCT) {
        log_error("api", "%s.size is %zu; set it to sizeof(struct coll_%s)",
                  name, size, name);
        return COLL_ERR_INVALID;
    }
    for (size_t i = len; i < size; i++)
        if (bytes[i]) {
            log_error("api", "%s has fields that libcoll %s does not know and "
                      "that are not zero; a newer libcoll is needed", name,
                      coll_version());
            return COLL_ERR_INVALID;
        }
    memset(ours, 0, len);
    memcpy(ours, theirs, min_size(size, len));
    return COLL_OK;
}

static int wrong(const struct coll_args *args, const char *what)
{
    log_error("api", "%s: %s", coll_collective_name(args->collective), what);
    return COLL_ERR_INVALID;
}

static int check_kind(const struct coll_args *args,
                      const struct coll_comm *comm)
{
    if ((unsigned)args->collective >= COLL_N_COLLECTIVES) {
        log_error("api", "%d is no collective; see enum coll_collective",
                  (int)args->collective);
        return COLL_ERR_INVALID;
    }
    if ((unsigned)args->type >= COLL_N_TYPES) {
        log_error("api", "%s: %d is no element type; see enum coll_type",
                  coll_collective_name(args->collective), (int)args->type);
        return COLL_ERR_INVALID;
    }
    if (args->collective == COLL_BROADCAST &&
        (args->root < 0 || args->root >= comm->size)) {
        log_error("api", "broadcast: root %d is not within 0 to %d", args->root,
                  comm->size - 1);
        return COLL_ERR_INVALID;
    }
    if (args->stream)
        return wrong(args, "stream must be NULL for host buffers");
    return COLL_OK;
}

static int check_op(const struct coll_args *args, struct coll__op *op)
{
    if (coll__op_get(args->op, op)) {
        log_error("api", "%s: %d is no operation; see enum coll_op and "
                  "coll_op_create_user()",
                  coll_collective_name(args->collective), (int)args->op);
        return COLL_ERR_INVALID;
    }
    if (!coll__op_takes(op, args->type)) {
        log_error("api", "%s: %s is not there for %s; %s",
                  coll_collective_name(args->collective),
                  coll_op_name(args->op), coll_type_name(args->type),
                  op->is_premul ? "use the type of its scalar"
                                : "use an integer type");
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

static int overlap(const void *a, size_t a_len, const void *b, size_t b_len)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_len && b_len && x < y + b_len && y < x + a_len;
}

/* Judge the buffers; *in_place says whether they are one. */
static int check_buffers(const struct coll_args *args,
                         const struct coll__problem *pb, int *in_place)
{
    size_t in_len = coll__problem_len(pb, BUF_IN);
    size_t out_len = coll__problem_len(pb, BUF_OUT);
    const char *own = args->out;

    *in_place = 0;
    if (in_len && !args->in)
        return wrong(args, "in is NULL");
    if (out_len && !args->out)
        return wrong(args, "out is NULL");
    if (!in_len || !out_len)
        return COLL_OK;
    if (pb->collective == COLL_ALLGATHER)
        own += (size_t)pb->rank * in_len;
    *in_place = args->in == own;
    if (!*in_place && overlap(args->in, in_len, args->out, out_len))
        return wrong(args, pb->collective == COLL_ALLGATHER
                               ? "in and out overlap; in place means in == out "
                                 "+ rank * count, else keep them apart"
                               : "in and out overlap; pass the same pointer "
                                 "(in place) or keep them apart");
    return COLL_OK;
}

int coll__args_check(const struct coll_args *args, const struct coll_comm *comm,
                     struct coll__problem *pb)
{
    int rc = check_kind(args, comm), reduces;
    struct coll__op op;
    size_t size, limit;

    reduces = rc == COLL_OK && coll__reduces(args->collective);
    if (reduces)
        rc = check_op(args, &op);
    if (rc)
        return rc;
    size = coll_type_size(args->type);
    limit = PTRDIFF_MAX / size /
            (args->collective == COLL_ALLGATHER ? (size_t)comm->size : 1);
    if (args->count > limit)
        return wrong(args, "count is larger than the address space");
    *pb = (struct coll__problem){.collective = args->collective,
                                 .type = args->type,
                                 .nranks = comm->size,
                                 .rank = comm->rank,
                                 .count = args->count,
                                 .view = &comm->view};
    if (args->collective == COLL_BROADCAST)
        pb->root = args->root;
    if (args->collective != COLL_BARRIER) {
        rc = check_buffers(args, pb, &pb->in_place);
        if (reduces)
            coll__op_apply(&op, comm->settings.is_reproducible, pb);
        return rc;
    }
    pb->type = COLL_U8;
    pb->op = COLL_MAX;
    pb->count = 1;
    return COLL_OK;
}
