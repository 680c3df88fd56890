/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.c - inputs and results in 64-bit arithmetic, and where they lie.
 *
 * Compiled without sanitizers: their looking at every step of the arithmetic would take
 * most of the time.  The ranks' buffers are written and read by memcpy() and memcmp()
 * alone, which the sanitizers' libraries look at in any case.
 */
#include "tests/support/oracle.h"
#include "tests/support/parts.h"
#include "lib/type/half.h"
#include "lib/type/op.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <string.h>

#define BLOCK                                                                  \
    512 /* elements that are made before they are copied or compared */

/* Whole numbers are exact up to 8 or 16 only. */
static int is_small_float(enum coll_type type)
{
    return type == COLL_F8E4M3 || type == COLL_F8E5M2;
}

int oracle_is_exact(const struct oracle_op *op)
{
    struct coll__op base = {.base = op->op};

    if (op->own == OWN_PREMUL)
        return !is_small_float(op->type) && is_number(op->type);
    if (op->own == OWN_SCALED)
        return !is_small_float(op->type) && coll__type_rounds(op->type);
    if (op->own)
        return 1;
    return coll__op_takes(&base, op->type) &&
           !(op->op == COLL_AVG &&
             (is_small_float(op->type) || coll__is_prefix(op->collective)));
}

/* May an element have any bits? */
static int is_bits(enum coll_type type)
{
    return (coll__type_kind(type) & (KIND_INTEGER | KIND_BOOL)) != 0;
}

static int reduces(const struct oracle_op *op)
{
    return op->collective == COLL_ALLREDUCE || op->collective == COLL_REDUCE ||
           op->collective == COLL_REDUCE_SCATTER ||
           op->collective == COLL_REDUCE_SCATTERV ||
           coll__is_prefix(op->collective);
}

static int has_counts(const struct oracle_op *op)
{
    return op->collective == COLL_ALLGATHERV ||
           op->collective == COLL_REDUCE_SCATTERV ||
           op->collective == COLL_ALLTOALLV ||
           op->collective == COLL_GATHERV || op->collective == COLL_SCATTERV;
}

/* ---- elements ------------------------------------------------------------ */

/* A number stands for a complex number with the opposite as its imaginary part; for
 * products it is the exponent of 1 + 2i, whose powers have no part that is 0. */
static void put_complex(enum coll_type type, void *to, size_t i, int64_t value,
                        int is_power)
{
    double re = is_power ? 1 : (double)value;
    double im = is_power ? 0 : (double)-value;

    for (int64_t n = 0; is_power && n < value; n++) {
        double last = re;

        re = last - 2 * im;
        im += 2 * last;
    }
    if (type == COLL_C64) {
        ((float *)to)[2 * i] = (float)re;
        ((float *)to)[2 * i + 1] = (float)im;
    } else {
        ((double *)to)[2 * i] = re;
        ((double *)to)[2 * i + 1] = im;
    }
}

/* A number's last two bits stand for an index, the others for a value.  The least number
 * is then the first pair of a minloc; the greatest is that of a maxloc, if the indices are
 * put backwards. */
static void put_pair(enum coll_type type, void *to, size_t i, int64_t value,
                     int is_backwards)
{
    int32_t index = (int32_t)(is_backwards ? ~value & 3 : value & 3);
    int32_t first = (int32_t)(value >> 2);
    char *at = (char *)to + i * coll_type_size(type);
    float narrow = (float)first;
    double wide = first;

    memset(at, 0, coll_type_size(type)); /* and the padding */
    if (type == COLL_F64_I32)
        memcpy(at, &wide, sizeof(wide));
    else
        memcpy(at, type == COLL_I32_I32 ? (void *)&first : (void *)&narrow,
               sizeof(first));
    memcpy(at + (type == COLL_F64_I32 ? 8 : 4), &index, sizeof(index));
}

/* op: what the number stands for depends on it; SUM for the caller's own. */
static void put(enum coll_type type, enum coll_op op, void *to, size_t i,
                int64_t value)
{
    switch (type) {
    case COLL_C64:
    case COLL_C128:
        put_complex(type, to, i, value, op == COLL_PROD);
        break;
    case COLL_F32_I32:
    case COLL_F64_I32:
    case COLL_I32_I32:
        put_pair(type, to, i, value, op == COLL_MAXLOC);
        break;
    case COLL_I8:
    case COLL_U8:
    case COLL_BOOL:
        ((uint8_t *)to)[i] = (uint8_t)value;
        break;
    case COLL_I16:
    case COLL_U16:
        ((uint16_t *)to)[i] = (uint16_t)value;
        break;
    case COLL_I32:
    case COLL_U32:
        ((uint32_t *)to)[i] = (uint32_t)value;
        break;
    case COLL_I64:
    case COLL_U64:
        ((uint64_t *)to)[i] = (uint64_t)value;
        break;
    case COLL_F16:
        ((uint16_t *)to)[i] = f16_narrow((float)value);
        break;
    case COLL_BF16:
        ((uint16_t *)to)[i] = bf16_narrow((float)value);
        break;
    case COLL_F32:
        ((float *)to)[i] = (float)value;
        break;
    case COLL_F64:
        ((double *)to)[i] = (double)value;
        break;
    case COLL_F8E4M3:
        ((uint8_t *)to)[i] = f8e4m3_narrow((float)value);
        break;
    case COLL_F8E5M2:
        ((uint8_t *)to)[i] = f8e5m2_narrow((float)value);
        break;
    case COLL_N_TYPES:
        break;
    }
}

static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 29) * 0x94d049bb133111ebu;
    return h ^ h >> 32;
}

/* Element i of part q of rank's input: 0 to 7, or 1 to 2 for products, or, for
 * averages, numbers whose sum is a multiple of the number of ranks.  For sums and products
 * of small floats few ranks have such numbers. */
static int64_t input(const struct oracle_op *op, int rank, int q, size_t i)
{
    uint64_t h = mix(op->seed + i * 0x9e3779b97f4a7c15u + 1000u * (unsigned)q);
    int64_t common = (int64_t)(h >> 40) % 4;

    if (!reduces(op))
        return (common + rank) % 8;
    if (op->own == OWN_ORDERED)
        return !is_bits(op->type) ? (common + rank) % 3
                                  : (int64_t)mix(h + (unsigned)rank);
    if (op->own != OWN_NONE)
        return (common + 3 * rank) % 8;
    if (op->op == COLL_AVG)
        return 1 + common +
               (rank == op->size - 1 && op->size % 2 ? 0 : rank % 2 ? 1 : -1);
    if (is_small_float(op->type) && rank % 8 && op->op <= COLL_PROD)
        return op->op == COLL_PROD;
    if (op->op == COLL_PROD)
        return (common + rank) % 2 + !is_complex(op->type);
    if (is_small_float(op->type) && op->op == COLL_SUM)
        return common;
    return (common + 3 * rank) % 8;
}

static int64_t scalar_of(int rank) { return 1 + rank % 3; }

double oracle_prescale(const struct oracle_op *op, int rank)
{
    return op->own == OWN_SCALED ? (double)scalar_of(rank) : 0;
}

double oracle_postscale(const struct oracle_op *op)
{
    return op->own == OWN_SCALED && !coll__is_prefix(op->collective) ? 2 : 0;
}

static int has_scalar(const struct oracle_op *op)
{
    return op->own == OWN_PREMUL || op->own == OWN_SCALED;
}

/* Two maps x -> a x + b after each other, a and b being the halves of an
 * integer: it matters which is first.  For others: the first that is not 0. */
static uint64_t compose(enum coll_type type, uint64_t left, uint64_t right)
{
    unsigned half = 4 * (unsigned)coll_type_size(type);
    uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t a = (left >> half) * (right >> half);
    uint64_t b = (left >> half) * (right & mask) + (left & mask);

    if (!is_bits(type))
        return left ? left : right;
    return (a & mask) << half | (b & mask);
}

static int64_t truncate(enum coll_type type, int64_t value)
{
    size_t bits = 8 * coll_type_size(type);

    return bits == 64 || !is_bits(type)
               ? value
               : (int64_t)((uint64_t)value & (((uint64_t)1 << bits) - 1));
}

static int64_t combine_own(const struct oracle_op *op, int64_t all,
                           int64_t next, int rank)
{
    if (has_scalar(op))
        return all + scalar_of(rank) * next;
    if (op->own == OWN_COMMUTES)
        return next > all ? next : all;
    return (int64_t)compose(op->type, (uint64_t)all,
                            (uint64_t)truncate(op->type, next));
}

/* Of bool. */
static int64_t combine_truth(enum coll_op op, int64_t all, int64_t next)
{
    switch (op) {
    case COLL_PROD:
    case COLL_MIN:
    case COLL_BAND:
    case COLL_LAND:
        return all && next;
    case COLL_BXOR:
    case COLL_LXOR:
        return !all != !next;
    default:
        return all || next;
    }
}

static int64_t combine(enum coll_op op, int64_t all, int64_t next)
{
    switch (op) {
    case COLL_SUM:
    case COLL_AVG:
        return all + next;
    case COLL_PROD:
        return all * next;
    case COLL_MIN:
    case COLL_MINLOC:
        return next < all ? next : all;
    case COLL_MAX:
    case COLL_MAXLOC:
        return next > all ? next : all;
    case COLL_BAND:
        return all & next;
    case COLL_BOR:
        return all | next;
    case COLL_BXOR:
        return all ^ next;
    case COLL_LAND:
        return all && next;
    case COLL_LOR:
        return all || next;
    case COLL_LXOR:
        return !all != !next;
    default:
        return 0;
    }
}

/* Are the numbers exponents? */
static int is_power(const struct oracle_op *op)
{
    return op->op == COLL_PROD && is_complex(op->type);
}

/* Element i of part q of the first n ranks' inputs, combined. */
static int64_t reduced(const struct oracle_op *op, int n, int q, size_t i)
{
    int64_t all = input(op, 0, q, i);

    if (has_scalar(op))
        all *= scalar_of(0);
    if (op->own == OWN_ORDERED)
        all = truncate(op->type, all);
    for (int r = 1; r < n; r++) {
        int64_t next = input(op, r, q, i);

        all = op->own                 ? combine_own(op, all, next, r)
              : op->type == COLL_BOOL ? combine_truth(op->op, all, next)
              : is_power(op)          ? all + next
                                      : combine(op->op, all, next);
    }
    if (oracle_postscale(op) != 0)
        all *= (int64_t)oracle_postscale(op);
    return !op->own && op->op == COLL_AVG ? all / op->size : all;
}

/* Element i of part q of rank's result. */
static int64_t expected(const struct oracle_op *op, int rank, int q, size_t i)
{
    switch (op->collective) {
    case COLL_ALLREDUCE:
    case COLL_REDUCE:
        return reduced(op, op->size, 0, i);
    case COLL_SCAN:
        return reduced(op, rank + 1, 0, i);
    case COLL_EXSCAN:
        return reduced(op, rank, 0, i);
    case COLL_REDUCE_SCATTER:
    case COLL_REDUCE_SCATTERV:
        return reduced(op, op->size, rank, i);
    case COLL_BROADCAST:
        return input(op, op->root, 0, i);
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
        return input(op, q, rank, i);
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return input(op, op->root, rank, i);
    default:
        return input(op, q, 0, i);
    }
}

/* ---- layouts ------------------------------------------------------------- */

/* What rank r gives to rank q. */
static size_t given(const struct oracle_op *op, int r, int q)
{
    uint64_t h;

    if (!has_counts(op))
        return op->count;
    h = mix(op->seed * 31u + (unsigned)r * 257u + (unsigned)q);
    return h % 3 ? (h >> 8) % (2 * op->count + 1) : 0;
}

static int n_parts(const struct oracle_op *op, int rank, int is_out)
{
    int of_root = rank == op->root;

    switch (op->collective) {
    case COLL_BARRIER:
        return 0;
    case COLL_BROADCAST:
        return is_out || of_root;
    case COLL_REDUCE:
        return !is_out || of_root;
    case COLL_EXSCAN:
        return !is_out || rank > 0;
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
        return is_out ? op->size : 1;
    case COLL_REDUCE_SCATTER:
    case COLL_REDUCE_SCATTERV:
        return is_out ? 1 : op->size;
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
        return op->size;
    case COLL_GATHER:
    case COLL_GATHERV:
        return !is_out ? 1 : of_root ? op->size : 0;
    case COLL_SCATTER:
    case COLL_SCATTERV:
        return is_out ? 1 : of_root ? op->size : 0;
    default:
        return 1;
    }
}

/* The count of one of n parts: who gives it to whom? */
static size_t part_count(const struct oracle_op *op, int rank, int is_out,
                         int n, int q)
{
    if (op->collective == COLL_ALLTOALLV)
        return is_out ? given(op, q, rank) : given(op, rank, q);
    return given(op, 0, n == 1 ? rank : q);
}

/* Parts with gaps between them, and sometimes in reverse order. */
static void place(const struct oracle_op *op, int may_gap,
                  struct oracle_layout *l)
{
    size_t gap = may_gap ? op->seed % 3 : 0;
    int is_reverse = may_gap && op->seed % 5 == 0;

    l->len = gap;
    for (int i = 0; i < l->n; i++) {
        int q = is_reverse ? l->n - 1 - i : i;

        l->displs[q] = l->len;
        l->len += l->counts[q] + gap;
    }
}

void oracle_layout(const struct oracle_op *op, int rank, int is_out,
                   struct oracle_layout *layout)
{
    int n = n_parts(op, rank, is_out);

    layout->n = n;
    for (int q = 0; q < n; q++)
        layout->counts[q] = part_count(op, rank, is_out, n, q);
    place(op, n == op->size && has_counts(op) &&
                  op->collective != COLL_REDUCE_SCATTERV &&
                  (n > 1 || op->collective == COLL_ALLTOALLV),
          layout);
}

/* input() or expected() */
typedef int64_t element_fn(const struct oracle_op *op, int rank, int q,
                           size_t i);

static void make_block(const struct oracle_op *op, int rank, int q,
                       size_t first, size_t n, element_fn *element,
                       uint64_t *block)
{
    enum coll_op kind = op->own ? COLL_SUM : op->op;

    for (size_t i = 0; i < n; i++)
        put(op->type, kind, block, i, element(op, rank, q, first + i));
}

void oracle_fill(const struct oracle_op *op, int rank,
                 const struct oracle_layout *layout, void *in)
{
    size_t size = coll_type_size(op->type), n;
    uint64_t block[2 * BLOCK]; /* elements have 16 bytes at most */

    for (int q = 0; q < layout->n; q++)
        for (size_t i = 0; i < layout->counts[q]; i += n) {
            n = min_size(BLOCK, layout->counts[q] - i);
            make_block(op, rank, q, i, n, input, block);
            memcpy((char *)in + (layout->displs[q] + i) * size, block,
                   n * size);
        }
}

/* Where in n elements the first one differs, which there is. */
static size_t first_wrong(const char *a, const char *b, size_t size)
{
    size_t i = 0;

    while (!memcmp(a + i * size, b + i * size, size))
        i++;
    return i;
}

/* The first element of the parts, but for `skip`, that is not as it should be. */
static long verify(const struct oracle_op *op, int rank,
                   const struct oracle_layout *layout, int skip,
                   element_fn *element, const void *buf)
{
    size_t size = coll_type_size(op->type), n;
    uint64_t block[2 * BLOCK]; /* elements have 16 bytes at most */

    for (int q = 0; q < layout->n; q++)
        for (size_t i = 0; i < layout->counts[q] && q != skip; i += n) {
            size_t at = layout->displs[q] + i;
            const char *got = (const char *)buf + at * size;

            n = min_size(BLOCK, layout->counts[q] - i);
            make_block(op, rank, q, i, n, element, block);
            if (memcmp(got, block, n * size))
                return (long)(at + first_wrong(got, (char *)block, size));
        }
    return -1;
}

long oracle_verify(const struct oracle_op *op, int rank,
                   const struct oracle_layout *layout, const void *out)
{
    return verify(op, rank, layout, -1, expected, out);
}

long oracle_verify_in(const struct oracle_op *op, int rank,
                      const struct oracle_layout *layout, int skip,
                      const void *in)
{
    return verify(op, rank, layout, skip, input, in);
}

/* ---- operations of our own ----------------------------------------------- */

/* Is a the larger one?  The bits of the numbers 0 to 7 are in their order, up to the
 * sign of the parts; those of pairs are by the value and then by the index. */
static int is_larger(enum coll_type type, const char *a, const char *b)
{
    size_t part = coll_type_size(part_of_type(type));
    uint64_t x[2] = {0}, y[2] = {0};

    memcpy(&x[0], a, part);
    memcpy(&y[0], b, part);
    memcpy(&x[1], a + part, coll_type_size(type) - part);
    memcpy(&y[1], b + part, coll_type_size(type) - part);
    return x[0] > y[0] || (x[0] == y[0] && x[1] > y[1]);
}

/* memcpy: elements may lie at any address. */
static void larger_of(const void *left, const void *right, void *out,
                      size_t count, enum coll_type type, void *arg)
{
    size_t size = coll_type_size(type);

    (void)arg;
    for (size_t i = 0; i < count * size; i += size) {
        const char *a = (const char *)left + i, *b = (const char *)right + i;
        char larger[16];

        memcpy(larger, is_larger(type, a, b) ? a : b, size);
        memcpy((char *)out + i, larger, size);
    }
}

static void in_order(const void *left, const void *right, void *out,
                     size_t count, enum coll_type type, void *arg)
{
    static const char none[16];
    size_t size = coll_type_size(type);

    (void)arg;
    for (size_t i = 0; i < count * size; i += size) {
        const char *a = (const char *)left + i, *b = (const char *)right + i;
        uint64_t x[2] = {0}, y[2] = {0};

        memcpy(x, a, size);
        memcpy(y, b, size);
        if (is_bits(type))
            x[0] = compose(type, x[0], y[0]);
        else if (!memcmp(a, none, size))
            memcpy(x, y, size);
        memcpy((char *)out + i, x, size);
    }
}

int oracle_handles_init(struct oracle_handles *handles, int rank)
{
    for (int t = 0; t < COLL_N_TYPES; t++) {
        enum coll_type type = (enum coll_type)t;
        enum coll_type number = is_number(type) ? type : COLL_U8;
        uint64_t scalar[2] = {0}; /* the imaginary part stays 0 */

        put(part_of_type(number), COLL_SUM, scalar, 0, scalar_of(rank));
        if (coll_op_create_premul(scalar, number,
                                  &handles->own[OWN_PREMUL][t]) ||
            coll_op_create_user(larger_of, NULL, 1,
                                &handles->own[OWN_COMMUTES][t]) ||
            coll_op_create_user(in_order, NULL, 0,
                                &handles->own[OWN_ORDERED][t]))
            return 1;
    }
    return 0;
}

int oracle_handles_fini(struct oracle_handles *handles)
{
    int failed = 0;

    for (int own = OWN_NONE + 1; own < N_OWNS; own++)
        for (int t = 0; t < COLL_N_TYPES; t++)
            failed |= coll_op_destroy(handles->own[own][t]) != COLL_OK;
    return failed;
}
