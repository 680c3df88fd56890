/* SPDX-License-Identifier: BSD-3-Clause */
/* single.c - one rank, if no launcher describes more.
 *
 * A launcher that libcoll does not understand is an error: otherwise each of its
 * processes would be a job of one rank, and look right but compute wrong results.
 */
#include "lib/boot/boot.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

/* Variables by which launchers tell a process the number of ranks. */
static const struct {
    const char *size, *launcher, *remedy;
} others[] = {
    {"PMI_SIZE", "a PMI launcher",
     "have it keep PMI_FD open, or start the ranks by collrun or mpirun"},
    {"HOROVOD_SIZE", "horovodrun", "keep its variables"},
};

static int detect(void)
{
    int is_forced = coll__param_is_set(PARAM_BOOTSTRAP);

    for (size_t i = 0; i < ARRAY_LEN(others) && !is_forced; i++) {
        const char *text = getenv(others[i].size);

        if (!text || strtol(text, NULL, 10) <= 1)
            continue;
        log_error("boot",
                  "%s=%s: %s started this process as one of several, "
                  "and libcoll cannot meet the others; %s, or set "
                  "COLL_BOOTSTRAP=single to run alone",
                  others[i].size, text, others[i].launcher, others[i].remedy);
        return COLL_ERR_BOOTSTRAP;
    }
    return 1;
}

static int open_single(struct coll__boot *boot)
{
    boot->rank = 0;
    boot->size = boot->is_one_host = 1;
    coll__auth_random(boot->secret, sizeof(boot->secret));
    return COLL_OK;
}

static int places(struct coll__boot *boot, const void *in, size_t len,
                  void *out)
{
    (void)boot;
    memmove(out, in, len);
    return COLL_OK;
}

static void close_single(struct coll__boot *boot)
{
    coll__auth_wipe(boot->secret, sizeof(boot->secret));
}

const struct coll__boot_ops coll__boot_single = {
    .name = "single",
    .what = "one rank alone",
    .detect = detect,
    .open = open_single,
    .places = places,
    .tell = coll__boot_tell_nobody,
    .close = close_single,
};
