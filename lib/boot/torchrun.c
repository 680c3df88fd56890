/* SPDX-License-Identifier: BSD-3-Clause */
/* torchrun.c - the variables that PyTorch's launcher sets.
 *
 * MASTER_PORT belongs to torchrun's own store, so rank 0 listens at the first
 * free one of the 64 ports after it and the others try them all.  torchrun
 * gives the ranks no secret: what they prove to each other is made of the
 * job's name and MASTER_PORT (most jobs have the same name, "none"), which
 * keeps jobs apart but is no protection on a network that others share, unless
 * COLL_JOB_SECRET is set as well.
 */
#include "lib/net/auth.h"
#include "lib/boot/tcp.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_uint n_opened; /* as in env.c */

static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text ? text : "";
}

static int detect(void)
{
    static const char *const needed[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR",
                                         "MASTER_PORT"};
    /* MASTER_* alone describes nothing: job scripts export it. */
    const char *set = *text_of("RANK")         ? "RANK"
                      : *text_of("WORLD_SIZE") ? "WORLD_SIZE"
                      : *text_of("LOCAL_RANK") ? "LOCAL_RANK"
                                               : NULL;

    if (!set)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!*text_of(needed[i])) {
            log_error("boot",
                      "%s is set but %s is not; a rank of torchrun has "
                      "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: set them "
                      "all or none",
                      set, needed[i]);
            return COLL_ERR_BOOTSTRAP;
        }
    return 1;
}

static int read_number(const char *name, long least, long most, long *value)
{
    char *end;

    *value = strtol(text_of(name), &end, 10);
    if (end != text_of(name) && !*end && *value >= least && *value <= most)
        return COLL_OK;
    log_error("boot", "%s=%s is not valid: it must be %ld to %ld", name,
              text_of(name), least, most);
    return COLL_ERR_BOOTSTRAP;
}

static void make_secret(unsigned char secret[COLL__SECRET_BYTES])
{
    char text[1024];

    snprintf(text, sizeof(text), "torchrun %.500s %.200s %.20s %.20s %.20s",
             coll__param_text(PARAM_JOB_SECRET), text_of("TORCHELASTIC_RUN_ID"),
             text_of("TORCHELASTIC_RESTART_COUNT"), text_of("WORLD_SIZE"),
             text_of("MASTER_PORT"));
    coll__auth_from_text(text, secret);
    coll__auth_wipe(text, sizeof(text));
    if (!coll__param_is_set(PARAM_JOB_SECRET))
        log_info("boot", "torchrun gives its ranks no secret; set "
                         "COLL_JOB_SECRET where others share the network");
}

static int open_torchrun(struct coll__boot *boot)
{
    struct coll__tcp_spec spec = {.listen_fd = -1};
    long rank, size, port;
    int status = read_number("WORLD_SIZE", 1, INT_MAX / 2, &size);

    if (!status)
        status = read_number("RANK", 0, size - 1, &rank);
    if (!status)
        status = read_number("MASTER_PORT", 1, 65534, &port);
    if (status)
        return status;
    spec.rank = (int)rank;
    spec.size = (int)size;
    spec.n_ports =
        65535 - port < COLL__MAX_PORTS ? (int)(65535 - port) : COLL__MAX_PORTS;
    spec.remedy = "is it the same job?";
    status =
        coll__tcp_resolve(&spec, text_of("MASTER_ADDR"), (uint16_t)(port + 1));
    if (status)
        return status;
    make_secret(spec.secret);
    spec.generation =
        atomic_fetch_add_explicit(&n_opened, 1, memory_order_relaxed);
    status = coll__tcp_open(boot, &spec);
    coll__auth_wipe(spec.secret, sizeof(spec.secret));
    return status;
}

const struct coll__boot_ops coll__boot_torchrun = {
    .name = "torchrun",
    .what = "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
    .detect = detect,
    .open = open_torchrun,
    .places = coll__tcp_places,
    .tell = coll__tcp_tell,
    .close = coll__tcp_close,
};
