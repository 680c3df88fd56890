/* SPDX-License-Identifier: BSD-3-Clause */
/* abi.c - the values and layouts of the nccl.h that it is compiled with, to be compared
 * with another's: what programs of NCCL 2.27 and later ones have in common. */
#include <nccl.h>
#include <stddef.h>
#include <stdio.h>

#define VALUE(name) printf("%s %lld\n", #name, (long long)(name));
#define AT(type, field)                                                        \
    printf("%s.%s at %zu\n", #type, #field, offsetof(type, field));

int main(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    VALUE(ncclSuccess)
    VALUE(ncclUnhandledCudaError) VALUE(ncclSystemError) VALUE(
        ncclInternalError) VALUE(ncclInvalidArgument) VALUE(ncclInvalidUsage)
        VALUE(ncclRemoteError) VALUE(ncclInProgress) VALUE(ncclNumResults) VALUE(
            ncclSum) VALUE(ncclProd) VALUE(ncclMax) VALUE(ncclMin) VALUE(ncclAvg)
            VALUE(ncclNumOps) VALUE(ncclMaxRedOp) VALUE(sizeof(ncclRedOp_t)) VALUE(
                ncclInt8) VALUE(ncclUint8) VALUE(ncclInt32) VALUE(ncclUint32)
                VALUE(ncclInt64) VALUE(ncclUint64) VALUE(ncclFloat16) VALUE(
                    ncclFloat32) VALUE(ncclFloat64) VALUE(ncclBfloat16)
                    VALUE(ncclFloat8e4m3) VALUE(ncclFloat8e5m2) VALUE(
                        ncclNumTypes) VALUE(sizeof(ncclDataType_t))
                        VALUE(ncclScalarDevice) VALUE(ncclScalarHostImmediate) VALUE(
                            sizeof(ncclUniqueId)) VALUE(NCCL_SPLIT_NOCOLOR)
                            VALUE(NCCL_WIN_DEFAULT) VALUE(NCCL_WIN_COLL_SYMMETRIC) VALUE(
                                NCCL_SHRINK_DEFAULT) VALUE(NCCL_SHRINK_ABORT)
                                VALUE(NCCL_CONFIG_UNDEF_INT) VALUE(config.magic) VALUE(
                                    config.blocking) VALUE(!config.netName)
                                    VALUE(info.magic) VALUE(sizeof(info)) AT(
                                        ncclConfig_t,
                                        size) AT(ncclConfig_t,
                                                 magic) AT(ncclConfig_t,
                                                           version) AT(ncclConfig_t,
                                                                       blocking)
                                        AT(ncclConfig_t, cgaClusterSize) AT(
                                            ncclConfig_t,
                                            minCTAs) AT(ncclConfig_t,
                                                        maxCTAs) AT(ncclConfig_t,
                                                                    netName)
                                            AT(ncclConfig_t, splitShare) AT(
                                                ncclConfig_t,
                                                trafficClass) AT(ncclConfig_t,
                                                                 commName)
                                                AT(ncclConfig_t, collnetEnable) AT(
                                                    ncclConfig_t,
                                                    CTAPolicy) AT(ncclConfig_t,
                                                                  shrinkShare)
                                                    AT(ncclConfig_t, nvlsCTAs) AT(
                                                        ncclSimInfo_t, version)
                                                        AT(ncclSimInfo_t,
                                                           estimatedTime) return 0;
}
