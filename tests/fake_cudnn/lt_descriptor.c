/* SPDX-License-Identifier: BSD-3-Clause */
/* lt_descriptor.c - cuBLASLt's handles and descriptors.  To wrong values of
 * descriptors they answer what cuBLAS 13.1 does, which needs no device for that. */
#include "tests/fake_cudnn/lt.h"

#include <string.h>

#define INVALID CUBLAS_STATUS_INVALID_VALUE

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "the function requires an architectural feature absent from "
               "the device";
    case CUBLAS_STATUS_MAPPING_ERROR:
        return "an access to GPU memory space failed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the requested functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
        return "the license check failed";
    default:
        return "unrecognized status";
    }
}

/* ---- handles ------------------------------------------------------------- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    struct lt_handle *h;
    CUcontext ctx = NULL;
    CUresult rc;

    if (!handle)
        return INVALID;
    rc = runtime_begin("cublasLtCreate", &ctx);
    if (rc)
        return rc == CUDA_ERROR_OUT_OF_MEMORY ||
                       rc == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                   ? CUBLAS_STATUS_ALLOC_FAILED
                   : CUBLAS_STATUS_NOT_INITIALIZED;
    h = object_new(LT_HANDLE, sizeof(*h));
    h->ctx = ctx;
    *handle = (cublasLtHandle_t)h;
    return CUBLAS_STATUS_SUCCESS;
}

/* It waits for the device: cuBLAS, cublasLtCreate(). */
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    struct lt_handle *h = object_of(handle, LT_HANDLE, "cublasLtDestroy");

    if (!h)
        return INVALID;
    object_end(handle, LT_HANDLE, "cublasLtDestroy");
    return runtime_end(h->ctx) ? CUBLAS_STATUS_INTERNAL_ERROR
                               : CUBLAS_STATUS_SUCCESS;
}

/* ---- attributes ---------------------------------------------------------- */

struct attribute {
    int number;
    size_t at, size;
};

#define FIELD(number, type, field)                                             \
    {                                                                          \
        (int)number, offsetof(struct type, field),                             \
            sizeof(((struct type *)0)->field)                                  \
    }

/* Those that the list lacks are others that cuBLASLt 13.1 has, up to `last`. */
enum { LAST_OF_MATMUL = 38, LAST_OF_LAYOUT = 8, LAST_OF_PREFERENCE = 12 };

struct attributes {
    const struct attribute *list;
    int n, last;
};

static cublasStatus_t set(void *object, const struct attributes *known,
                          int number, const void *value, size_t size)
{
    if (!object || !value || number < 0 || number > known->last)
        return INVALID;
    for (int i = 0; i < known->n; i++) {
        const struct attribute *a = &known->list[i];

        if (a->number != number)
            continue;
        if (size != a->size)
            return INVALID;
        memcpy((char *)object + a->at, value, size);
        return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

#define ATTRIBUTES(list, last)                                                 \
    {                                                                          \
        (list), (int)(sizeof(list) / sizeof(*(list))), (int)(last)             \
    }

/* ---- products ------------------------------------------------------------ */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    struct matmul *m;

    if (!out)
        return INVALID;
    m = object_new(MATMUL, sizeof(*m));
    m->compute = (int32_t)compute;
    m->scale = (int32_t)scale;
    m->pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    m->fill = CUBLAS_FILL_MODE_FULL;
    m->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    m->bias_type = -1;
    *out = (cublasLtMatmulDesc_t)(void *)m;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle)
{
    if (handle)
        object_end(handle, MATMUL, "cublasLtMatmulDescDestroy");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t at,
                                              const void *value, size_t size)
{
    static const struct attribute list[] = {
        FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, matmul, compute),
        FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, matmul, scale),
        FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, matmul, pointer_mode),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSA, matmul, trans_a),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSB, matmul, trans_b),
        FIELD(CUBLASLT_MATMUL_DESC_TRANSC, matmul, trans_c),
        FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, matmul, fill),
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, matmul, epilogue),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, matmul, bias),
        FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, matmul, processors),
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, matmul, bias_type)};
    static const struct attributes known = ATTRIBUTES(list, LAST_OF_MATMUL);

    if ((int)at == 9) /* there is none of this number */
        return INVALID;
    return set(object_of(handle, MATMUL, "cublasLtMatmulDescSetAttribute"),
               &known, (int)at, value, size);
}

/* ---- layouts ------------------------------------------------------------- */

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    struct layout *l;

    if (!out)
        return INVALID;
    l = object_new(LAYOUT, sizeof(*l));
    *l = (struct layout){.type = (uint32_t)type,
                         .order = CUBLASLT_ORDER_COL,
                         .rows = rows,
                         .cols = cols,
                         .ld = ld,
                         .batch = 1};
    *out = (cublasLtMatrixLayout_t)(void *)l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle)
{
    if (handle)
        object_end(handle, LAYOUT, "cublasLtMatrixLayoutDestroy");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                 cublasLtMatrixLayoutAttribute_t at,
                                 const void *value, size_t size)
{
    static const struct attribute list[] = {
        FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, layout, type),
        FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
        FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
        FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, layout, cols),
        FIELD(CUBLASLT_MATRIX_LAYOUT_LD, layout, ld),
        FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, batch),
        FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout,
              batch_stride)};
    static const struct attributes known = ATTRIBUTES(list, LAST_OF_LAYOUT);

    return set(object_of(handle, LAYOUT, "cublasLtMatrixLayoutSetAttribute"),
               &known, (int)at, value, size);
}

/* ---- preferences --------------------------------------------------------- */

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    struct preference *p;

    if (!out)
        return INVALID;
    p = object_new(PREFERENCE, sizeof(*p));
    *p = (struct preference){
        0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    *out = (cublasLtMatmulPreference_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle)
{
    if (handle)
        object_end(handle, PREFERENCE, "cublasLtMatmulPreferenceDestroy");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                     cublasLtMatmulPreferenceAttributes_t at,
                                     const void *value, size_t size)
{
    static const struct attribute list[] = {
        FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference, workspace),
        FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, preference,
              reductions),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, preference, align[0]),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, preference, align[1]),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, preference, align[2]),
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, preference,
              align[3])};
    static const struct attributes known = ATTRIBUTES(list, LAST_OF_PREFERENCE);

    return set(
        object_of(handle, PREFERENCE, "cublasLtMatmulPreferenceSetAttribute"),
        &known, (int)at, value, size);
}
