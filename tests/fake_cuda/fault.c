/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.c - errors on demand.
 *
 * FAKE_CUDA_FAULT=entry:n:status[,...]: the n-th call of that entry answers with the
 * status and does nothing; n+ means that one and all later ones.  A status of those
 * that stay (DA, CUresult: 700, 702, 710, 714 to 719) is the process' from then on.
 */
#include "tests/fake_cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fault {
    char entry[64];
    long from;
    int is_open; /* n+ */
    CUresult status;
    atomic_long n_calls;
};

enum { MAX_FAULTS = 16 };
static struct fault faults[MAX_FAULTS];
static int n_faults;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_one(const char *text)
{
    struct fault *f = &faults[n_faults];
    char plus[2] = "";
    int status = 0;

    if (sscanf(text, "%63[^:]:%ld%1[+]:%d", f->entry, &f->from, plus,
               &status) != 4 &&
        sscanf(text, "%63[^:]:%ld:%d", f->entry, &f->from, &status) != 3) {
        fprintf(stderr, "fake_cuda: FAKE_CUDA_FAULT=%s: not entry:n:status\n",
                text);
        abort();
    }
    f->is_open = *plus == '+';
    f->status = (CUresult)status;
    n_faults++;
}

static void read_all(void)
{
    const char *text = getenv("FAKE_CUDA_FAULT");
    char *mine = text ? strdup(text) : NULL, *rest = mine;

    while (rest && *rest && n_faults < MAX_FAULTS) {
        char *one = strsep(&rest, ",");

        read_one(one);
    }
    free(mine);
}

static int stays(CUresult rc)
{
    return rc == CUDA_ERROR_ILLEGAL_ADDRESS ||
           rc == CUDA_ERROR_LAUNCH_TIMEOUT || rc == CUDA_ERROR_ASSERT ||
           (rc >= 714 && rc <= 719);
}

CUresult fault_of(const char *entry)
{
    CUresult rc = CUDA_SUCCESS;

    pthread_once(&once, read_all);
    for (int i = 0; i < n_faults; i++) {
        struct fault *f = &faults[i];
        long n;

        if (strcmp(f->entry, entry))
            continue;
        n = atomic_fetch_add(&f->n_calls, 1) + 1;
        if (n == f->from || (f->is_open && n > f->from))
            rc = f->status;
    }
    if (stays(rc))
        fake_fail(rc);
    return rc;
}
