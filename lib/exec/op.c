/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c - the caller's own operations: a table of one process.
 *
 * A handle names a slot and how often that slot was used before, so that a
 * destroyed handle is noticed: the same one returns after two million others.
 * A slot is filled before its handle is stored, with release; who loads the
 * handle that it looks for, with acquire, may read the rest without a lock.
 */
#include "lib/exec/op.h"
#include "lib/trace/head.h"
#include "lib/trace/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define N_SLOTS 1000u
#define N_TURNS ((COLL_OP_LAST - COLL_N_OPS) / N_SLOTS)

struct slot {
    _Atomic unsigned handle; /* 0: free */
    unsigned turn;           /* of its next use */
    struct coll__op op;
};

static struct slot slots[N_SLOTS];
static unsigned cursor; /* where to look for a free one next */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct slot *slot_of(enum coll_op op)
{
    return &slots[((unsigned)op - COLL_N_OPS) % N_SLOTS];
}

int coll__op_get(enum coll_op op, struct coll__op *out)
{
    struct slot *slot;

    if ((unsigned)op < COLL_N_OPS) {
        *out = (struct coll__op){.base = op, .commutes = 1};
        return COLL_OK;
    }
    slot = slot_of(op);
    if (atomic_load_explicit(&slot->handle, memory_order_acquire) !=
        (unsigned)op)
        return COLL_ERR_INVALID;
    *out = slot->op;
    return COLL_OK;
}

static int is_float(enum coll_type type)
{
    return type == COLL_F16 || type == COLL_BF16 || type == COLL_F32 ||
           type == COLL_F64;
}

int coll__op_takes(const struct coll__op *op, enum coll_type type)
{
    if (op->is_premul)
        return op->type == type;
    if (op->base == COLL_BAND || op->base == COLL_BOR || op->base == COLL_BXOR)
        return !is_float(type);
    return 1;
}

/* Whether another order of combination may give other bits. */
static int order_matters(const struct coll__op *op, enum coll_type type)
{
    if (op->fn)
        return 1;
    return is_float(type) && (op->base == COLL_SUM || op->base == COLL_PROD ||
                              op->base == COLL_AVG);
}

void coll__op_apply(const struct coll__op *op, int is_reproducible,
                    struct coll__problem *pb)
{
    pb->op = op->base;
    pb->is_user_op = op->fn != NULL;
    if (!op->commutes)
        pb->order = ORDER_RANKS;
    else if (is_reproducible && order_matters(op, pb->type))
        pb->order = ORDER_CANONICAL;
    else
        pb->order = ORDER_FREE;
    if (op->is_premul) /* IN is then a copy */
        pb->in_place = 0;
}

uint8_t coll__op_code(const struct coll__op *op)
{
    if (op->is_premul)
        return COLL__HEAD_PREMUL;
    return op->fn ? COLL__HEAD_USER : (uint8_t)op->base;
}

/* ---- making them --------------------------------------------------------- */

/* Under the lock: the next free slot, or NULL. */
static struct slot *find_free(void)
{
    for (unsigned i = 0; i < N_SLOTS; i++) {
        struct slot *slot = &slots[(cursor + i) % N_SLOTS];

        if (!atomic_load_explicit(&slot->handle, memory_order_relaxed)) {
            cursor = (unsigned)(slot - slots) + 1;
            return slot;
        }
    }
    return NULL;
}

static int op_add(const struct coll__op *op, enum coll_op *out)
{
    struct slot *slot;
    unsigned handle = 0;

    pthread_mutex_lock(&lock);
    slot = find_free();
    if (slot) {
        handle = COLL_N_OPS + (unsigned)(slot - slots) + N_SLOTS * slot->turn;
        slot->turn = (slot->turn + 1) % N_TURNS;
        slot->op = *op;
        atomic_store_explicit(&slot->handle, handle, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (!slot) {
        log_error("op", "there are %u operations already; end those that are "
                  "not needed by coll_op_destroy()", N_SLOTS);
        return COLL_ERR_NOMEM;
    }
    *out = (enum coll_op)handle;
    return COLL_OK;
}

int coll_op_create_premul(const void *scalar, enum coll_type type,
                          enum coll_op *op)
{
    struct coll__op ours = {.base = COLL_SUM, .commutes = 1, .is_premul = 1};

    if (!scalar || !op) {
        log_error("op", "coll_op_create_premul: %s is NULL",
                  scalar ? "op" : "scalar");
        return COLL_ERR_INVALID;
    }
    if ((unsigned)type >= COLL_N_TYPES) {
        log_error("op", "coll_op_create_premul: %d is no element type; see "
                  "enum coll_type", (int)type);
        return COLL_ERR_INVALID;
    }
    ours.type = type;
    memcpy(ours.scalar, scalar, coll_type_size(type));
    return op_add(&ours, op);
}

int coll_op_create_user(coll_user_fn *fn, void *arg, int commutes,
                        enum coll_op *op)
{
    struct coll__op ours = {.base = COLL_SUM, .fn = fn, .arg = arg,
                            .commutes = commutes != 0};

    if (!fn || !op) {
        log_error("op", "coll_op_create_user: %s is NULL", fn ? "op" : "fn");
        return COLL_ERR_INVALID;
    }
    return op_add(&ours, op);
}

int coll_op_destroy(enum coll_op op)
{
    int found = 0;

    pthread_mutex_lock(&lock);
    if ((unsigned)op >= COLL_N_OPS) {
        struct slot *slot = slot_of(op);

        found = atomic_load_explicit(&slot->handle, memory_order_relaxed) ==
                (unsigned)op;
        if (found)
            atomic_store_explicit(&slot->handle, 0, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    if (found)
        return COLL_OK;
    log_error("op", (unsigned)op < COLL_N_OPS
                        ? "coll_op_destroy: a built-in operation does not end"
                        : "coll_op_destroy: there is no such operation; was it "
                          "destroyed before?");
    return COLL_ERR_INVALID;
}
