/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - results, and what the last error was. */
#include "bindings/nccl/result.h"

#include <coll/coll.h>

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char why[NCCL__WHY_MAX];

ncclResult_t nccl__wrong(ncclResult_t result, const char *format, ...)
{
    char text[NCCL__WHY_MAX]; /* an argument may be this thread's sentence */
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(why, sizeof(why), "%s", text);
    return result;
}

static ncclResult_t result_of(int status)
{
    switch (status) {
    case COLL_OK:
        return ncclSuccess;
    case COLL_IN_PROGRESS:
        return ncclInProgress;
    case COLL_ERR_INVALID:
        return ncclInvalidArgument;
    case COLL_ERR_MISMATCH:
    case COLL_ERR_UNSUPPORTED:
        return ncclInvalidUsage;
    case COLL_ERR_PEER:
    case COLL_ERR_TIMEOUT:
    case COLL_ERR_ABORTED:
    case COLL_ERR_BOOTSTRAP:
        return ncclRemoteError;
    case COLL_ERR_NOMEM:
    case COLL_ERR_SYSTEM:
    case COLL_ERR_TRANSPORT:
        return ncclSystemError;
    default:
        return ncclInternalError;
    }
}

ncclResult_t nccl__of_status(int status)
{
    if (status < 0)
        snprintf(why, sizeof(why), "%s", coll_last_error());
    return result_of(status);
}

const char *nccl__why(void) { return why; }

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return why;
}
NCCL__ALIAS(GetLastError);

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "a call of CUDA failed",
        [ncclSystemError] = "a system call failed",
        [ncclInternalError] = "internal error",
        [ncclInvalidArgument] = "invalid argument",
        [ncclInvalidUsage] = "invalid usage",
        [ncclRemoteError] = "a rank failed or cannot be reached",
        [ncclInProgress] = "operation in progress",
    };

    return (unsigned)result < ncclNumResults ? texts[result]
                                             : "unknown result code";
}
NCCL__ALIAS(GetErrorString);

ncclResult_t ncclGetVersion(int *version)
{
    if (!version)
        return nccl__wrong(ncclInvalidArgument,
                           "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
NCCL__ALIAS(GetVersion);

/* COLL_LOG is read once, so there is nothing to read again. */
void ncclResetDebugInit(void) {}
NCCL__ALIAS(ResetDebugInit);
