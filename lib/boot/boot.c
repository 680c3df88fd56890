/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.c - choose the bootstrap that the environment describes. */
#include "lib/boot/boot.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"

#include <stdio.h>
#include <string.h>

static void list_names(char *text, size_t len)
{
    size_t at = 0;

    for (int i = 0; coll__boots[i] && at < len; i++)
        at += (size_t)snprintf(text + at, len - at, "%s%s", i ? ", " : "",
                               coll__boots[i]->name);
}

/* Find the bootstrap that COLL_BOOTSTRAP forces. */
static int find_forced(const char *name, const struct coll__boot_ops **ops)
{
    char known[128];
    int is_there;

    for (int i = 0; coll__boots[i]; i++) {
        if (strcmp(coll__boots[i]->name, name))
            continue;
        *ops = coll__boots[i];
        is_there = coll__boots[i]->detect();
        if (is_there > 0)
            return COLL_OK;
        if (!is_there)
            log_error("boot",
                      "COLL_BOOTSTRAP=%s, but this process was not "
                      "started so: %s is missing",
                      name, coll__boots[i]->what);
        return is_there ? is_there : COLL_ERR_BOOTSTRAP;
    }
    list_names(known, sizeof(known));
    log_error("boot",
              "COLL_BOOTSTRAP=%s is not known here; it must be one of "
              "%s",
              name, known);
    return COLL_ERR_INVALID;
}

static int find(const struct coll__boot_ops **ops)
{
    for (int i = 0; coll__boots[i]; i++) {
        int is_there = coll__boots[i]->detect();

        if (is_there < 0)
            return is_there;
        if (!is_there)
            continue;
        *ops = coll__boots[i];
        return COLL_OK;
    }
    log_error("boot", "no bootstrap fits this environment");
    return COLL_ERR_BOOTSTRAP;
}

int coll__boot_open_env(struct coll__boot *boot, double timeout)
{
    const struct coll__boot_ops *ops;
    int status = coll__param_is_set(PARAM_BOOTSTRAP)
                     ? find_forced(coll__param_text(PARAM_BOOTSTRAP), &ops)
                     : find(&ops);

    if (status)
        return status;
    *boot = (struct coll__boot){.ops = ops, .timeout = timeout};
    status = ops->open(boot);
    if (!status)
        log_info("boot", "rank %d of %d by %s", boot->rank, boot->size,
                 ops->name);
    return status;
}

int coll__boot_allgather(struct coll__boot *boot, const void *in, size_t len,
                         void *out)
{
    if (boot->size == 1) {
        memmove(out, in, len);
        return COLL_OK;
    }
    return boot->ops->allgather(boot, in, len, out);
}

void coll__boot_close(struct coll__boot *boot) { boot->ops->close(boot); }
