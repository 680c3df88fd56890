/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_probe.c - join by the environment, exchange ranks, leave; twice, so that
 * a second group of the same job is seen to work.  Prints one line. */
#include "lib/boot/boot.h"
#include "lib/ctrl/ctrl.h"
#include "lib/util/param.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_RANKS 256

static void on_failed(void *arg, int status, const char *text)
{
    (void)arg;
    fprintf(stderr, "failed: %s: %s\n", coll_strerror(status), text);
}

static enum coll__verdict on_call(void *arg, const struct coll__ctrl_call *call,
                                  int is_gathering, char text[COLL__TEXT_MAX])
{
    (void)arg;
    (void)call;
    (void)is_gathering;
    text[0] = '\0';
    return VERDICT_HERE;
}

static int probe(struct coll__boot *boot)
{
    static const struct coll__ctrl_events events = {on_failed, on_call, NULL};
    int ranks[MAX_RANKS], status;
    struct coll__ctrl *ctrl;

    if (boot->size > MAX_RANKS)
        return COLL_ERR_INVALID;
    status = coll__ctrl_open(boot, &events, &ctrl);
    if (status)
        return status;
    status = coll__ctrl_allgather(ctrl, &boot->rank, sizeof(int), ranks,
                                  boot->timeout);
    for (int r = 0; r < boot->size && !status; r++)
        if (ranks[r] != r)
            status = COLL_ERR_INTERNAL;
    if (!status)
        return coll__ctrl_close(ctrl, 1, boot->timeout);
    coll__ctrl_close(ctrl, 0, boot->timeout);
    return status;
}

int main(void)
{
    struct coll__boot boot;
    int status = 0;

    for (int i = 0; i < 2 && !status; i++) {
        status = coll__boot_open_env(&boot, coll__param_seconds(PARAM_TIMEOUT));
        if (status)
            break;
        status = probe(&boot);
        coll__boot_close(&boot);
    }
    if (status) {
        fprintf(stderr, "%s\n", coll_last_error());
        return EXIT_FAILURE;
    }
    printf("rank %d of %d by %s\n", boot.rank, boot.size, boot.ops->name);
    return EXIT_SUCCESS;
}
