/* SPDX-License-Identifier: BSD-3-Clause */
/* lt_matmul.c - cuBLASLt's products: the choice of an algorithm, and the work. */
#include "tests/fake_cudnn/lt.h"

#include <string.h>

#define INVALID CUBLAS_STATUS_INVALID_VALUE
#define UNSUPPORTED CUBLAS_STATUS_NOT_SUPPORTED

/* What is in a cublasLtMatmulAlgo_t.  It is of one kind of product and asks for so much
 * workspace and such alignments, of A, B, C, D and the bias. */
struct algo {
    uint32_t magic, kind;
    uint64_t workspace;
    uint32_t align[5];
};
_Static_assert(sizeof(struct algo) <= sizeof(cublasLtMatmulAlgo_t),
               "an algorithm has 64 bytes");

enum { MAGIC = 0x4c74416c, VECTOR = 16 };

static uint32_t kind_of(const struct product *p)
{
    return (uint32_t)(p->a.type | p->d.type << 2 | p->read_as << 4 |
                      p->has_bias << 6 | p->has_relu << 7);
}

/* ---- the choice ---------------------------------------------------------- */

/* Kernels read vectors of 16 bytes where the memory is known to be aligned so. */
static uint32_t vector_of(uint32_t align)
{
    return align < VECTOR ? align : VECTOR;
}

static int is_power(uint32_t x) { return x && !(x & (x - 1)); }

/* The header, CUBLASLT_MATMUL_DESC_BIAS_POINTER: the value tells the alignment. */
static uint32_t align_of_bias(const struct matmul *op)
{
    uintptr_t at = (uintptr_t)op->bias;

    return at % VECTOR ? (uint32_t)(at & -at) : VECTOR;
}

static cublasStatus_t algo_for(const struct product *p, const struct matmul *op,
                               const struct preference *want, struct algo *out)
{
    const struct lt_matrix *const at[] = {&p->a, &p->b, &p->c, &p->d};

    *out = (struct algo){.magic = MAGIC, .kind = kind_of(p)};
    for (int i = 0; i < 4; i++) {
        if (!is_power(want->align[i]))
            return INVALID;
        if (want->align[i] < number_size(at[i]->type))
            return UNSUPPORTED;
        out->align[i] = vector_of(want->align[i]);
    }
    out->align[4] = align_of_bias(op);
    return CUBLAS_STATUS_SUCCESS;
}

/* The sums of a product that is split along k. */
static uint64_t split_workspace(const struct product *p)
{
    return (2 * p->m * p->n * sizeof(float) + 255) & ~(uint64_t)255;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
    int requested, cublasLtMatmulHeuristicResult_t results[], int *returned)
{
    const char *entry = "cublasLtMatmulAlgoGetHeuristic";
    const struct lt_call call = {entry, op, a, b, c, d};
    const struct preference *want = object_of(preference, PREFERENCE, entry);
    struct product p;
    struct algo algo;
    uint64_t split;
    cublasStatus_t st;

    if (!object_of(handle, LT_HANDLE, entry))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!want || requested <= 0 || !results || !returned)
        return INVALID;
    *returned = 0;
    st = lt_check(&call, &p);
    if (!st)
        st = algo_for(&p, object_of(op, MATMUL, entry), want, &algo);
    if (st)
        return st;
    split = split_workspace(&p);
    for (int is_split = 1; is_split >= 0 && *returned < requested; is_split--) {
        cublasLtMatmulHeuristicResult_t *r = &results[*returned];

        if (is_split && (!want->reductions || split > want->workspace))
            continue;
        algo.workspace = is_split ? split : 0;
        memset(r, 0, sizeof(*r));
        memcpy(&r->algo, &algo, sizeof(algo));
        r->workspaceSize = algo.workspace;
        r->state = CUBLAS_STATUS_SUCCESS;
        r->wavesCount = 1;
        ++*returned;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the work ------------------------------------------------------------ */

/* Where everything lies. */
struct places {
    const void *at[4], *bias, *workspace;
    size_t workspace_len;
};

static cublasStatus_t check_places(const struct product *p,
                                   const struct algo *algo,
                                   const struct places *where)
{
    for (int i = 0; i < 4; i++) {
        if (!where->at[i])
            return INVALID;
        if ((uintptr_t)where->at[i] % algo->align[i])
            return UNSUPPORTED;
    }
    if (where->at[2] == where->at[3] && !p->is_in_place_alike)
        return INVALID;
    if (p->has_bias && !where->bias)
        return INVALID;
    if (where->workspace_len < algo->workspace ||
        (algo->workspace && !where->workspace) ||
        (uintptr_t)where->workspace % 256)
        return INVALID;
    return CUBLAS_STATUS_SUCCESS;
}

/* cuBLAS, cublasLtMatmul(): without an algorithm it asks for one with default
 * preferences. */
static cublasStatus_t take_algo(const cublasLtMatmulAlgo_t *given,
                                const struct product *p,
                                const struct matmul *op, struct algo *out)
{
    const struct preference defaults = {.align = {256, 256, 256, 256}};

    if (!given)
        return algo_for(p, op, &defaults, out);
    memcpy(out, given, sizeof(*out));
    if (out->magic != MAGIC)
        return INVALID;
    return out->kind == kind_of(p) ? CUBLAS_STATUS_SUCCESS : UNSUPPORTED;
}

static void place(struct fake_cuda_work *work, const struct product *p,
                  const struct algo *algo, const struct places *where)
{
    const size_t lens[] = {p->a.len, p->b.len, p->c.len, p->d.len};

    for (int i = 0; i < 4; i++)
        work->spans[i] = (struct fake_cuda_span){(CUdeviceptr)where->at[i],
                                                 lens[i], algo->align[i]};
    if (p->has_bias)
        work->spans[4] = (struct fake_cuda_span){(CUdeviceptr)where->bias,
                                                 p->m * number_size(p->d.type),
                                                 algo->align[4]};
    if (where->workspace)
        work->spans[5] = (struct fake_cuda_span){(CUdeviceptr)where->workspace,
                                                 where->workspace_len, 256};
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t op,
               const void *alpha, const void *a, cublasLtMatrixLayout_t a_desc,
               const void *b, cublasLtMatrixLayout_t b_desc, const void *beta,
               const void *c, cublasLtMatrixLayout_t c_desc, void *d,
               cublasLtMatrixLayout_t d_desc, const cublasLtMatmulAlgo_t *given,
               void *workspace, size_t workspace_len, cudaStream_t stream)
{
    const char *entry = "cublasLtMatmul";
    const struct lt_call call = {entry, op, a_desc, b_desc, c_desc, d_desc};
    const struct lt_handle *h = object_of(handle, LT_HANDLE, entry);
    const struct matmul *desc = object_of(op, MATMUL, entry);
    struct fake_cuda_work work = {.entry = entry, .run = lt_run};
    struct places where = {{a, b, c, d}, NULL, workspace, workspace_len};
    struct product p;
    struct algo algo;
    cublasStatus_t st;

    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!desc || !alpha || !beta)
        return INVALID;
    where.bias = desc->bias;
    st = lt_check(&call, &p);
    if (!st)
        st = take_algo(given, &p, desc, &algo);
    if (!st)
        st = check_places(&p, &algo, &where);
    if (st)
        return st;
    memcpy(&p.alpha, alpha, sizeof(p.alpha));
    memcpy(&p.beta, beta, sizeof(p.beta));
    p.workspace = algo.workspace;
    place(&work, &p, &algo, &where);
    work.args = &p;
    work.args_len = sizeof(p);
    return fake_cuda_put(h->ctx, (CUstream)stream, &work)
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
