/* SPDX-License-Identifier: BSD-3-Clause */
/* lt_check.c - which products there are: cuBLAS, cublasLtMatmul(); of its tables the lines
 * of CUDA_R_32F and CUDA_R_16BF. */
#include "tests/fake_cudnn/lt.h"

#include <string.h>

#define INVALID CUBLAS_STATUS_INVALID_VALUE
#define UNSUPPORTED CUBLAS_STATUS_NOT_SUPPORTED

/* ---- one matrix ---------------------------------------------------------- */

static int is_number(uint32_t type)
{
    return type == CUDA_R_32F || type == CUDA_R_16BF;
}

static cublasStatus_t check_layout(const struct layout *l)
{
    uint64_t line = l->order == CUBLASLT_ORDER_ROW ? l->cols : l->rows;

    if (l->order < CUBLASLT_ORDER_COL || l->order > CUBLASLT_ORDER_COL32_2R_4R4)
        return INVALID;
    if (!l->rows || !l->cols || l->ld <= 0 || (uint64_t)l->ld < line ||
        l->batch < 1)
        return INVALID;
    if (l->order > CUBLASLT_ORDER_ROW || l->batch != 1 || l->rows > INT32_MAX ||
        l->cols > INT32_MAX || !is_number(l->type))
        return UNSUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static struct lt_matrix matrix_of(const struct layout *l, int is_transposed)
{
    struct lt_matrix m = {.type = l->type == CUDA_R_16BF ? BF16 : F32};
    size_t ld = (size_t)l->ld, rows = (size_t)l->rows, cols = (size_t)l->cols;
    int is_row = l->order == CUBLASLT_ORDER_ROW;
    int is_line_first = is_row != is_transposed;

    m.row = is_line_first ? ld : 1;
    m.col = is_line_first ? 1 : ld;
    m.len = (is_row ? (rows - 1) * ld + cols : (cols - 1) * ld + rows) *
            number_size(m.type);
    return m;
}

/* ---- all together -------------------------------------------------------- */

/* Both inputs of one type; C and D of that type, or of float. */
static cublasStatus_t check_types(const struct matmul *op,
                                  const struct layout *const at[4])
{
    if (op->compute != CUBLAS_COMPUTE_32F &&
        op->compute != CUBLAS_COMPUTE_32F_FAST_TF32)
        return UNSUPPORTED;
    if (op->scale != CUDA_R_32F)
        return UNSUPPORTED;
    if (at[0]->type != at[1]->type || at[2]->type != at[3]->type)
        return UNSUPPORTED;
    if (at[2]->type != at[0]->type && at[2]->type != CUDA_R_32F)
        return UNSUPPORTED;
    if (op->compute == CUBLAS_COMPUTE_32F_FAST_TF32 &&
        at[0]->type != CUDA_R_32F)
        return UNSUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static int is_operation(int32_t op)
{
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

/* A bias is of D's type, one number for each of its rows, which lie side by side: with D
 * row after row there is no such epilogue. */
static cublasStatus_t check_operation(const struct matmul *op,
                                      const struct layout *d)
{
    if (!is_operation(op->trans_a) || !is_operation(op->trans_b) ||
        !is_operation(op->trans_c))
        return INVALID;
    if (op->trans_c != CUBLAS_OP_N || op->fill != CUBLAS_FILL_MODE_FULL ||
        op->pointer_mode != CUBLASLT_POINTER_MODE_HOST)
        return UNSUPPORTED;
    switch (op->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
        if (op->bias_type != -1 && (uint32_t)op->bias_type != d->type)
            return UNSUPPORTED;
        return d->order == CUBLASLT_ORDER_COL ? CUBLAS_STATUS_SUCCESS
                                              : UNSUPPORTED;
    default:
        return op->epilogue > CUBLASLT_EPILOGUE_BGRADB + 0u ? INVALID
                                                            : UNSUPPORTED;
    }
}

static int is_same_layout(const struct layout *c, const struct layout *d)
{
    return c->order == d->order && c->ld == d->ld;
}

static cublasStatus_t fit(const struct matmul *op,
                          const struct layout *const at[4], struct product *p)
{
    int is_a = op->trans_a != CUBLAS_OP_N, is_b = op->trans_b != CUBLAS_OP_N;
    uint64_t k_of_b = is_b ? at[1]->cols : at[1]->rows;

    p->m = (size_t)(is_a ? at[0]->cols : at[0]->rows);
    p->k = (size_t)(is_a ? at[0]->rows : at[0]->cols);
    p->n = (size_t)(is_b ? at[1]->rows : at[1]->cols);
    if (k_of_b != p->k)
        return INVALID;
    for (int i = 2; i < 4; i++)
        if (at[i]->rows != p->m || at[i]->cols != p->n)
            return INVALID;
    if (at[2]->order != at[3]->order)
        return UNSUPPORTED;
    p->a = matrix_of(at[0], is_a);
    p->b = matrix_of(at[1], is_b);
    p->c = matrix_of(at[2], 0);
    p->d = matrix_of(at[3], 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_check(const struct lt_call *call, struct product *out)
{
    const struct matmul *op = object_of(call->op, MATMUL, call->entry);
    const struct layout *at[4] = {object_of(call->a, LAYOUT, call->entry),
                                  object_of(call->b, LAYOUT, call->entry),
                                  object_of(call->c, LAYOUT, call->entry),
                                  object_of(call->d, LAYOUT, call->entry)};
    cublasStatus_t st = CUBLAS_STATUS_SUCCESS;

    if (!op || !at[0] || !at[1] || !at[2] || !at[3])
        return INVALID;
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < 4 && !st; i++)
        st = check_layout(at[i]);
    if (!st)
        st = check_types(op, at);
    if (!st)
        st = check_operation(op, at[3]);
    if (!st)
        st = fit(op, at, out);
    if (st)
        return st;
    out->read_as =
        op->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? TF32 : out->a.type;
    out->has_bias = (op->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    out->has_relu = (op->epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
    out->is_in_place_alike = is_same_layout(at[2], at[3]);
    return CUBLAS_STATUS_SUCCESS;
}
