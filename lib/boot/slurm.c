/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - ranks that srun started without PMI: Slurm's variables say which ranks there
 * are, and they meet at a rendezvous on the first host of the step's list.
 *
 * The port is made from the job's and the step's numbers: rank 0 listens at the first
 * free one of 64, and the others try them all.  Another launcher's variables, which ranks
 * in an allocation may have as well, take precedence over Slurm's.  SLURM_STEP_ID alone
 * means that srun has started this very process.
 */
#include "lib/boot/hostlist.h"
#include "lib/boot/rendezvous.h"
#include "lib/boot/launcher_env.h"
#include "lib/trace/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_uint n_opened; /* as in env.c */

static int detect(void)
{
    static const char *const needed[] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                                         "SLURM_STEP_NODELIST", "SLURM_JOB_ID",
                                         NULL};

    return coll__launcher_env_has_all(
        "SLURM_STEP_ID", needed,
        "start the ranks by srun and keep its variables, "
        "or set COLL_BOOTSTRAP=single to run alone");
}

/* Find the host of rank 0; a step on one host needs no name lookup. */
static int find_root(char host[COLL__HOST_NAME])
{
    const char *list = coll__launcher_env("SLURM_STEP_NODELIST");

    if (!strcmp(coll__launcher_env("SLURM_STEP_NUM_NODES"), "1")) {
        snprintf(host, COLL__HOST_NAME, "localhost");
        return COLL_OK;
    }
    if (!coll__hostlist_first(list, host, COLL__HOST_NAME))
        return COLL_OK;
    log_error("boot", "SLURM_STEP_NODELIST=%.200s is no list of hosts", list);
    return COLL_ERR_BOOTSTRAP;
}

static int fill_in(struct coll__rendezvous_spec *spec)
{
    char host[COLL__HOST_NAME], words[200];
    int status = find_root(host);

    if (status)
        return status;
    snprintf(words, sizeof(words), "slurm %.40s.%.40s %d",
             coll__launcher_env("SLURM_JOB_ID"),
             coll__launcher_env("SLURM_STEP_ID"), spec->size);
    spec->n_ports = COLL__MAX_PORTS;
    spec->remedy = COLL__WORD_REMEDY;
    status =
        coll__rendezvous_resolve(spec, host, coll__rendezvous_port_of(words));
    if (status)
        return status;
    return coll__launcher_secret(words, "srun",
                                 !spec->rank && spec->size > 1 &&
                                     !coll__rendezvous_is_this_host(host),
                                 spec->secret);
}

static int open_slurm(struct coll__boot *boot)
{
    struct coll__rendezvous_spec spec = {.listen_fd = -1};
    int status = coll__launcher_env_place(
        "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &spec.rank, &spec.size);

    if (!status)
        status = fill_in(&spec);
    return status ? status
                  : coll__rendezvous_meet_again(boot, &spec, &n_opened);
}

const struct coll__boot_ops coll__boot_slurm = {
    .name = "slurm",
    .what = "SLURM_STEP_ID and srun's other variables",
    .given = "SLURM_PROCID",
    .identity = {"SLURM_PROCID", "SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
    .detect = detect,
    .open = open_slurm,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};
