/* SPDX-License-Identifier: BSD-3-Clause */
/* torchrun.c - the variables that PyTorch's launcher sets.
 *
 * MASTER_PORT belongs to torchrun's own store, so rank 0 listens at the first
 * free one of the 64 ports after it and the others try them all.
 *
 * torchrun gives the ranks no secret.  They use one made from the job's name and
 * MASTER_PORT (most jobs have the same name, "none").  It keeps jobs apart but is no
 * protection on a network that others share, unless COLL_JOB_SECRET or
 * COLL_JOB_SECRET_FILE is set as well.
 *
 * TORCHELASTIC_RESTART_COUNT is no part of it: an agent counts the failures of its own
 * ranks, so the ranks of one attempt may have different counts.
 */
#include "lib/boot/rendezvous.h"
#include "lib/boot/launcher_env.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_uint n_opened; /* as in env.c */

static int detect(void)
{
    static const char *const needed[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR",
                                         "MASTER_PORT", NULL};
    /* MASTER_* alone describes no job: job scripts export it. */
    const char *set = *coll__launcher_env("RANK")         ? "RANK"
                      : *coll__launcher_env("WORLD_SIZE") ? "WORLD_SIZE"
                                                          : "LOCAL_RANK";

    return coll__launcher_env_has_all(
        set, needed,
        "a rank of torchrun has RANK, WORLD_SIZE, "
        "MASTER_ADDR and MASTER_PORT: set them all or "
        "none");
}

static int make_secret(int says_so, unsigned char secret[COLL__SECRET_BYTES])
{
    char text[600];

    snprintf(text, sizeof(text), "torchrun %.200s %.20s %.20s",
             coll__launcher_env("TORCHELASTIC_RUN_ID"),
             coll__launcher_env("WORLD_SIZE"),
             coll__launcher_env("MASTER_PORT"));
    return coll__launcher_secret(text, "torchrun", says_so, secret);
}

static int open_torchrun(struct coll__boot *boot)
{
    struct coll__rendezvous_spec spec = {.listen_fd = -1};
    long port;
    int status =
        coll__launcher_env_place("RANK", "WORLD_SIZE", &spec.rank, &spec.size);

    if (!status)
        status = coll__launcher_env_number("MASTER_PORT", 1, 65534, &port);
    if (status)
        return status;
    spec.n_ports =
        65535 - port < COLL__MAX_PORTS ? (int)(65535 - port) : COLL__MAX_PORTS;
    spec.remedy = COLL__WORD_REMEDY;
    status = coll__rendezvous_resolve(&spec, coll__launcher_env("MASTER_ADDR"),
                                      (uint16_t)(port + 1));
    if (status)
        return status;
    status = make_secret(!spec.rank && !coll__rendezvous_is_this_host(
                                           coll__launcher_env("MASTER_ADDR")),
                         spec.secret);
    if (status)
        return status;
    return coll__rendezvous_meet_again(boot, &spec, &n_opened);
}

const struct coll__boot_ops coll__boot_torchrun = {
    .name = "torchrun",
    .what = "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
    .given = "TORCHELASTIC_RUN_ID",
    .identity = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                 "TORCHELASTIC_RUN_ID", NULL},
    .detect = detect,
    .open = open_torchrun,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};
