/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c - the caller's own operations: a table of one process.
 *
 * A handle names a slot, and how often the slot was used before; so the use of a
 * destroyed handle is noticed.  The same handle returns after two million others.
 *
 * A thread claims a slot by changing its handle from FREE to CLAIMED, with acquire, so
 * that it sees the stores of the slot's last owner.  It fills the slot and stores the new
 * handle with release.  A thread that loads that handle with acquire may read the slot.
 * There is no lock, so a forked child has none to wait for; at worst a slot that another
 * thread had claimed stays claimed in the child.
 */
#include "lib/type/op.h"
#include "lib/type/half.h"
#include "lib/type/signature.h"

#include <stdatomic.h>

#define N_TURNS ((COLL_OP_LAST - COLL_N_OPS) / COLL__OPS_MAX)

enum { FREE, CLAIMED }; /* in place of a handle; handles are COLL_N_OPS or more */

struct slot {
    _Atomic unsigned handle;
    unsigned turn; /* of its next use */
    struct coll__op op;
};

static struct slot slots[COLL__OPS_MAX];
static _Atomic unsigned cursor; /* where to look for a free slot next: a hint */

static struct slot *slot_of(enum coll_op op)
{
    return &slots[((unsigned)op - COLL_N_OPS) % COLL__OPS_MAX];
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

/* ---- factors --------------------------------------------------------------- */

static float widen(enum coll_type type, const void *scalar)
{
    const unsigned char *at = scalar;
    uint16_t half;

    if (type == COLL_F8E4M3)
        return f8e4m3_widen(*at);
    if (type == COLL_F8E5M2)
        return f8e5m2_widen(*at);
    memcpy(&half, at, sizeof(half));
    return type == COLL_F16 ? f16_widen(half) : bf16_widen(half);
}

void coll__factor_set(enum coll_type type, const void *scalar,
                      struct coll__factor *out)
{
    float wide;

    *out = (struct coll__factor){.is_set = 1, .type = type};
    if (coll__factor_type(type) == type) {
        memcpy(out->number, scalar, coll_type_size(type));
    } else {
        wide = widen(type, scalar);
        memcpy(out->number, &wide, sizeof(wide));
    }
}

int coll__same_factor(const struct coll__factor *a,
                      const struct coll__factor *b)
{
    return a->is_set == b->is_set && a->type == b->type &&
           !memcmp(a->number, b->number, sizeof(a->number));
}

/* Return a factor of elements of a floating-point or complex type. */
static struct coll__factor real_factor(enum coll_type type, double number)
{
    enum coll_type part = type == COLL_C64    ? COLL_F32
                          : type == COLL_C128 ? COLL_F64
                                              : type;
    struct coll__factor factor = {.is_set = 1, .type = part};
    float narrow = (float)number;

    if (part == COLL_F64)
        memcpy(factor.number, &number, sizeof(number));
    else
        memcpy(factor.number, &narrow, sizeof(narrow));
    return factor;
}

/* Return the m that an average of n ranks divides its input by; 1: of this type it does
 * not. */
static double power_of(enum coll_type type, int n)
{
    switch (type) {
    case COLL_F16:
        return power_for(n, F16_LEAST);
    case COLL_BF16:
        return power_for(n, BF16_LEAST);
    case COLL_F8E4M3:
        return power_for(n, F8E4M3_LEAST);
    case COLL_F8E5M2:
        return power_for(n, F8E5M2_LEAST);
    default:
        return 1;
    }
}

int coll__op_for(const struct coll_args *args, int n, struct coll__op *out)
{
    double pre = args->prescale ? args->prescale : 1;
    double post = args->postscale ? args->postscale : 1, m;
    int has_post = post != 1, rc = coll__op_get(args->op, out);

    if (rc)
        return rc;
    out->postscale = has_post ? (float)post : 0;
    if (out->base == COLL_AVG) {
        m = power_of(args->type, n);
        pre /= m;
        post *= m / n;
    }
    if (pre != 1)
        out->pre = real_factor(args->type, pre);
    if (has_post)
        out->post = real_factor(args->type, post);
    return COLL_OK;
}

/* ---- types ----------------------------------------------------------------- */

enum coll__kind coll__type_kind(enum coll_type type)
{
    switch (type) {
    case COLL_F16:
    case COLL_BF16:
    case COLL_F32:
    case COLL_F64:
    case COLL_F8E4M3:
    case COLL_F8E5M2:
        return KIND_FLOAT;
    case COLL_BOOL:
        return KIND_BOOL;
    case COLL_C64:
    case COLL_C128:
        return KIND_COMPLEX;
    case COLL_F32_I32:
    case COLL_F64_I32:
    case COLL_I32_I32:
        return KIND_PAIR;
    default:
        return KIND_INTEGER;
    }
}

int coll__type_rounds(enum coll_type type)
{
    return (coll__type_kind(type) & (KIND_FLOAT | KIND_COMPLEX)) != 0;
}

static int kinds_of(const struct coll__op *op)
{
    switch (op->base) {
    case COLL_SUM:
    case COLL_PROD:
        return KIND_INTEGER | KIND_FLOAT | KIND_BOOL | KIND_COMPLEX;
    case COLL_AVG:
        return KIND_INTEGER | KIND_FLOAT | KIND_COMPLEX;
    case COLL_BAND:
    case COLL_BOR:
    case COLL_BXOR:
        return KIND_INTEGER | KIND_BOOL;
    case COLL_MINLOC:
    case COLL_MAXLOC:
        return KIND_PAIR;
    default:
        return KIND_INTEGER | KIND_FLOAT | KIND_BOOL;
    }
}

int coll__op_takes(const struct coll__op *op, enum coll_type type)
{
    if (op->is_premul)
        return op->pre.type == type;
    return op->fn || (kinds_of(op) & (int)coll__type_kind(type));
}

const char *coll__op_kinds(const struct coll__op *op)
{
    int kinds = kinds_of(op);

    if (kinds & KIND_COMPLEX)
        return "numbers";
    if (kinds & KIND_PAIR)
        return "pairs of a value and an index";
    return kinds & KIND_FLOAT ? "real numbers" : "integers and bool";
}

int coll__op_is_hosts(const struct coll__op *op, enum coll_type type)
{
    if (coll__type_kind(type) == KIND_COMPLEX)
        return op->base == COLL_PROD || op->is_premul;
    return coll__type_kind(type) == KIND_PAIR && !op->fn;
}

uint8_t coll__op_code(const struct coll__op *op)
{
    uint8_t code = op->is_premul ? COLL__SIGNATURE_PREMUL
                   : op->fn      ? COLL__SIGNATURE_USER
                                 : (uint8_t)op->base;

    return op->post.is_set ? code | COLL__SIGNATURE_SCALED : code;
}

/* ---- making them --------------------------------------------------------- */

/* Claim the next free slot; NULL: there is none. */
static struct slot *claim(void)
{
    unsigned from = atomic_load_explicit(&cursor, memory_order_relaxed);

    for (unsigned i = 0; i < COLL__OPS_MAX; i++) {
        struct slot *slot = &slots[(from + i) % COLL__OPS_MAX];
        unsigned handle = FREE;

        if (atomic_compare_exchange_strong_explicit(
                &slot->handle, &handle, CLAIMED, memory_order_acquire,
                memory_order_relaxed)) {
            atomic_store_explicit(&cursor, (unsigned)(slot - slots) + 1,
                                  memory_order_relaxed);
            return slot;
        }
    }
    return NULL;
}

int coll__op_add(const struct coll__op *op, enum coll_op *out)
{
    struct slot *slot = claim();
    unsigned handle;

    if (!slot)
        return COLL_ERR_NOMEM;
    handle = COLL_N_OPS + (unsigned)(slot - slots) + COLL__OPS_MAX * slot->turn;
    slot->turn = (slot->turn + 1) % N_TURNS;
    slot->op = *op;
    atomic_store_explicit(&slot->handle, handle, memory_order_release);
    *out = (enum coll_op)handle;
    return COLL_OK;
}

int coll__op_remove(enum coll_op op)
{
    unsigned handle = (unsigned)op;

    if (handle < COLL_N_OPS || !atomic_compare_exchange_strong_explicit(
                                   &slot_of(op)->handle, &handle, FREE,
                                   memory_order_release, memory_order_relaxed))
        return COLL_ERR_INVALID;
    return COLL_OK;
}
