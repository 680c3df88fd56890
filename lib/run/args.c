/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - check the arguments of operations, with one error sentence for each mistake.
 *
 * The resulting problem borrows the caller's counts.  Displacements that the caller
 * left out are written into the communicator's own arrays, so that a call of a known
 * shape allocates nothing.
 */
#include "lib/run/args.h"
#include "lib/comm/comm.h"
#include "lib/plan/problem_op.h"
#include "lib/run/parts.h"
#include "lib/run/run.h"
#include "lib/trace/log.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STRUCT 4096 /* bytes; a larger size was never set */

int coll__place_check(const char *who, int nranks, int rank)
{
    if (nranks >= 1 && rank >= 0 && rank < nranks)
        return COLL_OK;
    log_error("api", "%s: %s", who,
              nranks < 1 ? "nranks must be 1 or more"
                         : "rank must be within 0 to nranks - 1");
    return COLL_ERR_INVALID;
}

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
            log_error("api",
                      "%s has fields that libcoll %s does not know and "
                      "that are not zero; a newer libcoll is needed",
                      name, coll_version());
            return COLL_ERR_INVALID;
        }
    memset(ours, 0, len);
    memcpy(ours, theirs, min_size(size, len));
    return COLL_OK;
}

int coll__args_wrong(const struct coll_args *args, const char *what)
{
    log_error("api", "%s: %s", coll_collective_name(args->collective), what);
    return COLL_ERR_INVALID;
}

int coll__args_keep(struct coll_args *args, const struct coll_comm *comm,
                    size_t **numbers)
{
    const size_t **arrays[] = {&args->in_counts, &args->in_displs,
                               &args->out_counts, &args->out_displs};
    size_t n = (size_t)comm->size, *to;
    int is_root = args->root == comm->rank ||
                  args->collective == COLL_ALLTOALLV ||
                  args->collective == COLL_ALLGATHERV ||
                  args->collective == COLL_REDUCE_SCATTERV;

    *numbers = NULL;
    if (!coll__has_counts(args->collective))
        return COLL_OK;
    to = *numbers = malloc(ARRAY_LEN(arrays) * n * sizeof(*to));
    if (!to) {
        log_error("api", "no memory for the counts of %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++, to += n) {
        if (*arrays[i] && is_root) /* of others they need not be arrays */
            *arrays[i] = memcpy(to, *arrays[i], n * sizeof(*to));
    }
    return COLL_OK;
}

/* ---- what it is ---------------------------------------------------------- */

static int has_root(enum coll_collective collective)
{
    return collective == COLL_BROADCAST || collective == COLL_REDUCE ||
           collective == COLL_GATHER || collective == COLL_GATHERV ||
           collective == COLL_SCATTER || collective == COLL_SCATTERV;
}

static int check_kind(const struct coll_args *args,
                      const struct coll_comm *comm)
{
    int is_p2p;

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
    is_p2p = coll__is_p2p(args->collective);
    if ((is_p2p || has_root(args->collective)) &&
        (args->root < 0 || args->root >= comm->size)) {
        log_error("api", "%s: %s %d is not within 0 to %d",
                  coll_collective_name(args->collective),
                  is_p2p ? "peer" : "root", args->root, comm->size - 1);
        return COLL_ERR_INVALID;
    }
    if (args->background != 0 && args->background != 1)
        return coll__args_wrong(args, "background must be 0 or 1");
    return COLL_OK;
}

/* Is it a factor other than 1? */
static int is_factor(double scale) { return scale != 0 && scale != 1; }

/* Does the factor, as the type has it, mean something? */
static int is_number(enum coll_type type, double scale)
{
    return isfinite(type == COLL_F64 || type == COLL_C128 ? scale
                                                          : (float)scale);
}

static int has_factors(const struct coll_args *args)
{
    return is_factor(args->prescale) || is_factor(args->postscale);
}

/* The call has factors, and the operation is for its type. */
static int check_factors(const struct coll_args *args,
                         const struct coll__op *op)
{
    if (op->fn || (op->base != COLL_SUM && op->base != COLL_AVG))
        return coll__args_wrong(args, "prescale and postscale are for sum and "
                                      "avg; make them 0");
    if (!coll__type_rounds(args->type)) {
        log_error("api",
                  "%s: prescale and postscale are for floating-point and "
                  "complex numbers, not for %s; make them 0",
                  coll_collective_name(args->collective),
                  coll_type_name(args->type));
        return COLL_ERR_INVALID;
    }
    if (!is_number(args->type, args->prescale) ||
        !is_number(args->type, args->postscale)) {
        log_error("api",
                  "%s: prescale %g and postscale %g must be finite numbers "
                  "that %s can hold",
                  coll_collective_name(args->collective), args->prescale,
                  args->postscale,
                  coll_type_name(coll__factor_type(args->type)));
        return COLL_ERR_INVALID;
    }
    if (op->is_premul && is_factor(args->prescale))
        return coll__args_wrong(args, "premul has a factor for the input; make "
                                      "prescale 0");
    if (coll__is_prefix(args->collective) && is_factor(args->postscale))
        return coll__args_wrong(args, "postscale is for reductions over all "
                                      "ranks; take prescale");
    return COLL_OK;
}

static int check_op(const struct coll_args *args, int n, struct coll__op *op)
{
    int rc;

    if (coll__op_get(args->op, op)) {
        log_error("api",
                  "%s: %d is no operation; see enum coll_op and "
                  "coll_op_create_user()",
                  coll_collective_name(args->collective), (int)args->op);
        return COLL_ERR_INVALID;
    }
    if (op->is_premul && !coll__op_takes(op, args->type)) {
        log_error("api",
                  "%s: premul was made for %s, not for %s; make one of "
                  "the type that is reduced",
                  coll_collective_name(args->collective),
                  coll_type_name(op->pre.type), coll_type_name(args->type));
        return COLL_ERR_INVALID;
    }
    if (op->base == COLL_AVG && coll__is_prefix(args->collective))
        return coll__args_wrong(args, "avg is for reductions over all ranks; "
                                      "take sum, and divide the results");
    if (!coll__op_takes(op, args->type)) {
        log_error("api", "%s: %s is for %s, not for %s",
                  coll_collective_name(args->collective),
                  coll_op_name(args->op), coll__op_kinds(op),
                  coll_type_name(args->type));
        return COLL_ERR_INVALID;
    }
    rc = has_factors(args) ? check_factors(args, op) : COLL_OK;
    return rc ? rc : coll__op_for(args, n, op);
}

/* ---- how much ------------------------------------------------------------ */

/* How many parts of `count` elements does the larger buffer have? */
static size_t count_parts(const struct coll__problem *pb)
{
    return coll__problem_shape(pb, BUF_IN) == SHAPE_PARTS ||
                   coll__problem_shape(pb, BUF_OUT) == SHAPE_PARTS
               ? (size_t)pb->nranks
               : 1;
}

/* One array of counts and displacements. */
struct layout {
    const char *counts_name, *displs_name;
    const size_t *counts, *displs;
    size_t *packed; /* where to write displs that the caller left out */
    int is_out;
};

static int wrong_array(const struct coll_args *args, const char *name,
                       const char *what)
{
    log_error("api", "%s: %s %s", coll_collective_name(args->collective), name,
              what);
    return COLL_ERR_INVALID;
}

/* Check the parts, and fill in the displacements that were left out. */
static int check_layout(const struct coll_args *args, struct coll_comm *comm,
                        struct layout *l)
{
    struct coll__parts parts = {0, 1, l->counts, l->displs, comm->size};
    size_t limit = PTRDIFF_MAX / coll_type_size(args->type), sum = 0;

    if (!l->counts)
        return wrong_array(args, l->counts_name,
                           "is NULL; it must hold a count for each rank");
    for (int r = 0; r < comm->size; r++) {
        if (l->counts[r] > limit - sum)
            return wrong_array(args, l->counts_name,
                               "adds up to more than the address space");
        if (!l->displs)
            l->packed[r] = sum;
        else if (l->counts[r] && l->displs[r] > limit - l->counts[r])
            return wrong_array(args, l->displs_name,
                               "reaches beyond the address space");
        sum += l->counts[r];
    }
    if (!l->displs)
        l->displs = l->packed;
    else if (l->is_out && coll__parts_overlap(&parts, &comm->run->sorter))
        return wrong_array(args, l->displs_name,
                           "makes parts of out overlap; keep them apart");
    return COLL_OK;
}

static int check_in_layout(const struct coll_args *args, struct coll_comm *comm,
                           struct coll__problem *pb)
{
    int is_two = args->collective == COLL_ALLTOALLV, rc;
    struct layout l = {is_two ? "in_counts" : "counts",
                       is_two ? "in_displs" : "displs",
                       args->in_counts,
                       args->in_displs,
                       comm->run->packed,
                       0};

    if (args->collective == COLL_REDUCE_SCATTERV && args->in_displs)
        return coll__args_wrong(args, "in_displs must be NULL; the blocks of "
                                      "in are packed");
    rc = check_layout(args, comm, &l);
    pb->in_counts = l.counts;
    pb->in_displs = l.displs;
    return rc;
}

static int check_out_layout(const struct coll_args *args,
                            struct coll_comm *comm, struct coll__problem *pb)
{
    int is_two = args->collective == COLL_ALLTOALLV, rc;
    struct layout l = {is_two ? "out_counts" : "counts",
                       is_two ? "out_displs" : "displs",
                       args->out_counts,
                       args->out_displs,
                       comm->run->packed + comm->size,
                       1};

    rc = check_layout(args, comm, &l);
    pb->out_counts = l.counts;
    pb->out_displs = l.displs;
    return rc;
}

/* Check the counts of a collective whose name ends in v, as far as this rank knows
 * them. */
static int check_counts(const struct coll_args *args, struct coll_comm *comm,
                        struct coll__problem *pb)
{
    int has_in = coll__problem_shape(pb, BUF_IN) == SHAPE_PARTS;
    int has_out = coll__problem_shape(pb, BUF_OUT) == SHAPE_PARTS;
    int rc = has_in ? check_in_layout(args, comm, pb) : COLL_OK;

    if (rc == COLL_OK && has_out)
        rc = check_out_layout(args, comm, pb);
    if (rc || (!has_in && !has_out))
        return rc;
    if (args->collective == COLL_ALLTOALLV) {
        pb->count = 0;
        if (pb->in_counts[pb->rank] != pb->out_counts[pb->rank])
            return coll__args_wrong(args,
                                    "in_counts[rank] and "
                                    "out_counts[rank] differ; make them equal");
        return COLL_OK;
    }
    if (has_root(args->collective) &&
        (has_in ? pb->in_counts : pb->out_counts)[pb->rank] != pb->count)
        return coll__args_wrong(args, "counts[root] is not the root's "
                                      "count; make them equal");
    pb->count = (has_in ? pb->in_counts : pb->out_counts)[pb->rank];
    return COLL_OK;
}

static int check_size(const struct coll_args *args, struct coll_comm *comm,
                      struct coll__problem *pb)
{
    size_t limit = PTRDIFF_MAX / coll_type_size(args->type);

    if (coll__has_counts(args->collective)) {
        if (args->count > limit)
            return coll__args_wrong(args,
                                    "count is larger than the address space");
        return check_counts(args, comm, pb);
    }
    if (args->count > limit / count_parts(pb))
        return coll__args_wrong(args, "count is larger than the address space");
    return COLL_OK;
}

int coll__args_check(const struct coll_args *args, struct coll_comm *comm,
                     struct coll__problem *pb)
{
    struct coll__op op;
    int rc = check_kind(args, comm), reduces;

    if (rc)
        return rc;
    reduces = coll__reduces(args->collective);
    if (reduces && (rc = check_op(args, comm->size, &op)))
        return rc;
    if (!reduces && has_factors(args))
        return coll__args_wrong(args, "prescale and postscale are for "
                                      "reductions; make them 0");
    *pb = (struct coll__problem){.collective = args->collective,
                                 .type = args->type,
                                 .nranks = comm->size,
                                 .rank = comm->rank,
                                 .count = args->count,
                                 .view = &comm->view};
    if (args->collective == COLL_BARRIER) {
        pb->type = COLL_U8;
        pb->op = COLL_MAX;
        pb->count = 1;
        return COLL_OK;
    }
    if (has_root(args->collective) || coll__is_p2p(args->collective))
        pb->root = args->root;
    rc = check_size(args, comm, pb);
    if (rc == COLL_OK)
        rc = coll__buffers_check(args, &comm->run->sorter, pb);
    if (rc == COLL_OK && reduces)
        coll__problem_set_op(&op, comm->settings.is_reproducible, pb);
    return rc;
}
