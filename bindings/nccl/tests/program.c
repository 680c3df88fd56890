/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - a program for NCCL, of C and of C++, that takes the address of every function
 * that nccl-tests and llm.c call. */
#include <nccl.h>
#include <stdio.h>

#define ENTRY(name)                                                            \
    {                                                                          \
#name, (void *)(nccl##name), (void *)(pnccl##name)                     \
    }

/* nccl-tests: src/common.cu and the files of the operations.  llm.c: zero.cuh, which
 * needs no other. */
static const struct {
    const char *name;
    void *first, *second;
} entries[] = {
    ENTRY(GetVersion),
    ENTRY(GetUniqueId),
    ENTRY(CommInitRank),
    ENTRY(CommInitRankConfig),
    ENTRY(CommInitAll),
    ENTRY(CommSplit),
    ENTRY(CommFinalize),
    ENTRY(CommDestroy),
    ENTRY(CommAbort),
    ENTRY(CommGetAsyncError),
    ENTRY(CommCount),
    ENTRY(CommCuDevice),
    ENTRY(CommUserRank),
    ENTRY(CommRegister),
    ENTRY(CommDeregister),
    ENTRY(CommWindowRegister),
    ENTRY(CommWindowDeregister),
    ENTRY(MemAlloc),
    ENTRY(MemFree),
    ENTRY(GetErrorString),
    ENTRY(GetLastError),
    ENTRY(RedOpCreatePreMulSum),
    ENTRY(RedOpDestroy),
    ENTRY(AllReduce),
    ENTRY(Reduce),
    ENTRY(Broadcast),
    ENTRY(Bcast),
    ENTRY(ReduceScatter),
    ENTRY(AllGather),
    ENTRY(Send),
    ENTRY(Recv),
    ENTRY(GroupStart),
    ENTRY(GroupEnd),
};

int main(void)
{
    int version = 0, n = (int)(sizeof(entries) / sizeof(*entries));

    if (ncclGetVersion(&version) != ncclSuccess)
        return 1;
    for (int i = 0; i < n; i++)
        if (!entries[i].first || entries[i].first != entries[i].second)
            return 1;
    printf("%d functions of NCCL %d\n", n, version);
    return 0;
}
