/* SPDX-License-Identifier: BSD-3-Clause */
/* user_op.c - the caller's own reduction operations. */
#include "include/coll/coll.h"
#include "lib/trace/log.h"
#include "lib/type/op.h"

static int enter(const struct coll__op *ours, enum coll_op *op)
{
    int rc = coll__op_add(ours, op);

    if (rc)
        log_error("op",
                  "there are %u operations already; end those that are "
                  "not needed by coll_op_destroy()",
                  COLL__OPS_MAX);
    return rc;
}

static int create_premul(const void *scalar, enum coll_type type,
                         enum coll_op *op)
{
    struct coll__op ours = {.base = COLL_SUM, .commutes = 1, .is_premul = 1};

    if (!scalar || !op) {
        log_error("op", "coll_op_create_premul: %s is NULL",
                  scalar ? "op" : "scalar");
        return COLL_ERR_INVALID;
    }
    if ((unsigned)type >= COLL_N_TYPES) {
        log_error("op",
                  "coll_op_create_premul: %d is no element type; see "
                  "enum coll_type",
                  (int)type);
        return COLL_ERR_INVALID;
    }
    if (coll__type_kind(type) & (KIND_BOOL | KIND_PAIR)) {
        log_error("op", "coll_op_create_premul: %s is no number",
                  coll_type_name(type));
        return COLL_ERR_INVALID;
    }
    coll__factor_set(type, scalar, &ours.pre);
    return enter(&ours, op);
}

int coll_op_create_premul(const void *scalar, enum coll_type type,
                          enum coll_op *op)
{
    return coll__log_done(create_premul(scalar, type, op));
}

static int create_user(coll_user_fn *fn, void *arg, int commutes,
                       enum coll_op *op)
{
    struct coll__op ours = {
        .base = COLL_SUM, .fn = fn, .arg = arg, .commutes = commutes != 0};

    if (!fn || !op) {
        log_error("op", "coll_op_create_user: %s is NULL", fn ? "op" : "fn");
        return COLL_ERR_INVALID;
    }
    return enter(&ours, op);
}

int coll_op_create_user(coll_user_fn *fn, void *arg, int commutes,
                        enum coll_op *op)
{
    return coll__log_done(create_user(fn, arg, commutes, op));
}

static int destroy(enum coll_op op)
{
    int rc = coll__op_remove(op);

    if (rc)
        log_error("op", (unsigned)op < COLL_N_OPS
                            ? "coll_op_destroy: a built-in operation does not "
                              "end"
                            : "coll_op_destroy: there is no such operation; "
                              "was it destroyed before?");
    return rc;
}

int coll_op_destroy(enum coll_op op) { return coll__log_done(destroy(op)); }
