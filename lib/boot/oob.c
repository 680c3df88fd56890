/* SPDX-License-Identifier: BSD-3-Clause */
/* oob.c - the caller's own allgather as a bootstrap. */
#include "lib/boot/boot.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

static int allgather(struct coll__boot *boot, const void *in, size_t len,
                     void *out)
{
    const struct coll_oob *oob = boot->state;
    int rc;

    if (boot->size == 1) {
        memmove(out, in, len);
        return COLL_OK;
    }
    rc = oob->allgather(oob->arg, in, out, len);

    if (!rc)
        return COLL_OK;
    log_error("boot",
              "the caller's allgather of %zu bytes returned %d instead "
              "of 0",
              len, rc);
    return COLL_ERR_BOOTSTRAP;
}

/* Run the caller's last allgather.  After it a rank that fails keeps no other rank
 * waiting in an allgather.  Each rank can check only its own block of the result. */
static int places(struct coll__boot *boot, const void *in, size_t len,
                  void *out)
{
    int status = allgather(boot, in, len, out);

    if (status || !memcmp((char *)out + len * (size_t)boot->rank, in, len))
        return status;
    log_error("boot",
              "the caller's allgather put other bytes where rank %d's belong; "
              "it must give every rank the %zu bytes of each, in rank order",
              boot->rank, len);
    return COLL_ERR_BOOTSTRAP;
}

static void close_oob(struct coll__boot *boot)
{
    coll__auth_wipe(boot->secret, sizeof(boot->secret));
    free(boot->state);
    boot->state = NULL;
}

static const struct coll__boot_ops oob_ops = {
    .name = "oob",
    .what = "the caller's own allgather",
    .places = places,
    .tell = coll__boot_tell_nobody,
    .close = close_oob,
};

static int is_valid(const struct coll_oob *oob)
{
    if (oob->size != sizeof(*oob))
        log_error("boot",
                  "coll_oob.size is %zu; set it to sizeof(struct "
                  "coll_oob), %zu",
                  oob->size, sizeof(*oob));
    else if (oob->nranks < 1 || oob->rank < 0 || oob->rank >= oob->nranks)
        log_error("boot",
                  "coll_oob: rank %d of %d; a rank must be 0 to size "
                  "- 1",
                  oob->rank, oob->nranks);
    else if (!oob->allgather)
        log_error("boot", "coll_oob.allgather is NULL; give a function");
    else
        return 1;
    return 0;
}

int coll__boot_open_oob(struct coll__boot *boot, const struct coll_oob *oob,
                        double timeout)
{
    struct coll_oob *copy;
    int status;

    if (!is_valid(oob))
        return COLL_ERR_INVALID;
    copy = malloc(sizeof(*copy));
    if (!copy) {
        log_error("boot", "no memory for a group of %d ranks", oob->nranks);
        return COLL_ERR_NOMEM;
    }
    *copy = *oob;
    *boot = (struct coll__boot){
        .ops = &oob_ops,
        .rank = oob->rank,
        .size = oob->nranks,
        .timeout = timeout,
        .state = copy,
    };
    status = coll__boot_share(boot, allgather);
    if (status)
        close_oob(boot);
    return status;
}
