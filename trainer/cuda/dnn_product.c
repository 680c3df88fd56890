/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn_product.c - products of matrices in row order, by cublasLt.
 *
 * cublasLt's matrices are in column order, and a matrix in row order is its transpose in
 * column order.  So out' = b' a' is computed, with b as the first factor.
 */
#include "trainer/cuda/dnn_product.h"
#include "trainer/cuda/gpu.h"
#include "trainer/error.h"

#include <stdlib.h>

#define MOST_WORK ((size_t)32 << 20) /* bytes; what cuBLAS takes on an H100 */

struct dnn_product {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulAlgo_t algo;
};

static int set(struct dnn_product *p, cublasLtMatmulDescAttributes_t attribute,
               const void *value, size_t len)
{
    return gpu_note_cublaslt(gpu.dnn.cublasLtMatmulDescSetAttribute(
                                 p->product, attribute, value, len),
                             "cublasLtMatmulDescSetAttribute");
}

static int describe_product(struct dnn_product *p,
                            const struct dnn_product_config *config)
{
    cublasComputeType_t compute = gpu.precision == PRECISION_TF32
                                      ? CUBLAS_COMPUTE_32F_FAST_TF32
                                      : CUBLAS_COMPUTE_32F;
    cublasOperation_t first = config->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = config->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;

    if (gpu_note_cublaslt(
            gpu.dnn.cublasLtMatmulDescCreate(&p->product, compute, CUDA_R_32F),
            "cublasLtMatmulDescCreate") ||
        set(p, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)) ||
        set(p, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)))
        return -1;
    return 0;
}

static cudaDataType_t value_type(void)
{
    return gpu_has_bf16() ? CUDA_R_16BF : CUDA_R_32F;
}

/* Describe a matrix that lies in memory as `rows` rows of `columns` numbers. */
static int describe_matrix(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                           int rows, int columns)
{
    return gpu_note_cublaslt(
        gpu.dnn.cublasLtMatrixLayoutCreate(layout, type, (uint64_t)columns,
                                           (uint64_t)rows, columns),
        "cublasLtMatrixLayoutCreate");
}

static int describe_matrices(struct dnn_product *p,
                             const struct dnn_product_config *c)
{
    if (describe_matrix(&p->a, value_type(), c->a_turned ? c->inner : c->rows,
                        c->a_turned ? c->rows : c->inner) ||
        describe_matrix(&p->b, value_type(),
                        c->b_turned ? c->columns : c->inner,
                        c->b_turned ? c->inner : c->columns))
        return -1;
    return describe_matrix(&p->out, c->out_is_f32 ? CUDA_R_32F : value_type(),
                           c->rows, c->columns);
}

static int prefer(cublasLtMatmulPreference_t preference,
                  cublasLtMatmulPreferenceAttributes_t attribute,
                  const void *value, size_t len)
{
    return gpu_note_cublaslt(gpu.dnn.cublasLtMatmulPreferenceSetAttribute(
                                 preference, attribute, value, len),
                             "cublasLtMatmulPreferenceSetAttribute");
}

/* Parameters lie in one array, each layer's behind the others', so that they are aligned
 * to floats only. */
static int describe_memory(cublasLtMatmulPreference_t preference,
                           const struct dnn_product_config *c)
{
    size_t most = MOST_WORK, len = sizeof(uint32_t);

    return prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                  sizeof(most)) ||
                   prefer(preference,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                          &c->alignment_b, len) ||
                   prefer(preference,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          &c->alignment_a, len) ||
                   prefer(preference,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                          &c->alignment_out, len) ||
                   prefer(preference,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                          &c->alignment_out, len)
               ? -1
               : 0;
}

/* Take the algorithm that cublasLt thinks the fastest. */
static int choose_with(struct dnn_product *p,
                       const struct dnn_product_config *config,
                       cublasLtMatmulPreference_t preference)
{
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;

    if (describe_memory(preference, config) ||
        gpu_note_cublaslt(gpu.dnn.cublasLtMatmulAlgoGetHeuristic(
                              gpu.cublaslt, p->product, p->b, p->a, p->out,
                              p->out, preference, 1, &found, &n),
                          "cublasLtMatmulAlgoGetHeuristic"))
        return -1;
    if (n < 1)
        return train_fail("cublasLt has no algorithm for a dense layer here; "
                          "give --device cpu%s",
                          gpu_remedy());
    p->algo = found.algo;
    return gpu_room(&gpu.work, found.workspaceSize);
}

static int choose(struct dnn_product *p,
                  const struct dnn_product_config *config)
{
    cublasLtMatmulPreference_t preference;
    int st;

    if (gpu_note_cublaslt(gpu.dnn.cublasLtMatmulPreferenceCreate(&preference),
                          "cublasLtMatmulPreferenceCreate"))
        return -1;
    st = choose_with(p, config, preference);
    gpu.dnn.cublasLtMatmulPreferenceDestroy(preference);
    return st;
}

int dnn_product_create(struct dnn_product **product,
                       const struct dnn_product_config *config)
{
    struct dnn_product *p = calloc(1, sizeof(*p));

    if (!p)
        return train_fail("out of memory for a dense layer; use fewer ranks on "
                          "this machine");
    if (describe_product(p, config) || describe_matrices(p, config) ||
        choose(p, config)) {
        dnn_product_destroy(p);
        return -1;
    }
    *product = p;
    return 0;
}

void dnn_product_destroy(struct dnn_product *p)
{
    if (!p)
        return;
    if (p->out)
        gpu.dnn.cublasLtMatrixLayoutDestroy(p->out);
    if (p->b)
        gpu.dnn.cublasLtMatrixLayoutDestroy(p->b);
    if (p->a)
        gpu.dnn.cublasLtMatrixLayoutDestroy(p->a);
    if (p->product)
        gpu.dnn.cublasLtMatmulDescDestroy(p->product);
    free(p);
}

int dnn_multiply(struct dnn_product *p, const struct dnn_product_io *io)
{
    float alpha = 1, beta = io->adds ? 1 : 0;

    return gpu_note_cublaslt(
        gpu.dnn.cublasLtMatmul(gpu.cublaslt, p->product, &alpha, io->b, p->b,
                               io->a, p->a, &beta, io->out, p->out, io->out,
                               p->out, &p->algo, gpu.work.at, gpu.work.len,
                               (cudaStream_t)gpu.compute),
        "cublasLtMatmul");
}
