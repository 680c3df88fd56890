/* SPDX-License-Identifier: BSD-3-Clause */
/* ompi.c - ranks that Open MPI's mpirun started, if libcoll was built without PMIx.
 *
 * mpirun's variables say which ranks there are but not where rank 0 is, so this is for
 * jobs on one host.  Open MPI 4 also gives its ranks a random key.
 */
#include "lib/boot/rendezvous.h"
#include "lib/boot/launcher_env.h"
#include "lib/trace/log.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_uint n_opened; /* as in env.c */

static int detect(void)
{
    return *coll__launcher_env("OMPI_COMM_WORLD_SIZE") != 0;
}

static int check_hosts(int size)
{
    long local;
    int status = coll__launcher_env_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1,
                                           size, &local);

    if (status || local == size)
        return status;
    log_error("boot",
              "Open MPI's mpirun started %ld of %d ranks on this host, and a "
              "libcoll without PMIx cannot find the others; build it with PMIx "
              "(Debian: apt-get install libpmix-dev)",
              local, size);
    return COLL_ERR_BOOTSTRAP;
}

static int fill_in(struct coll__rendezvous_spec *spec)
{
    char words[400];
    int status;

    snprintf(words, sizeof(words), "ompi %.100s %.100s %.100s %d",
             coll__launcher_env("PMIX_NAMESPACE"),
             coll__launcher_env("OMPI_MCA_ess_base_jobid"),
             coll__launcher_env("OMPI_MCA_orte_precondition_transports"),
             spec->size);
    spec->n_ports = COLL__MAX_PORTS;
    spec->remedy = COLL__WORD_REMEDY;
    status = coll__rendezvous_resolve(spec, "localhost",
                                      coll__rendezvous_port_of(words));
    return status ? status
                  : coll__launcher_secret(words, "mpirun", 0, spec->secret);
}

static int open_ompi(struct coll__boot *boot)
{
    struct coll__rendezvous_spec spec = {.listen_fd = -1};
    int status = coll__launcher_env_place(
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &spec.rank, &spec.size);

    if (!status)
        status = check_hosts(spec.size);
    if (!status)
        status = fill_in(&spec);
    return status ? status
                  : coll__rendezvous_meet_again(boot, &spec, &n_opened);
}

const struct coll__boot_ops coll__boot_ompi = {
    .name = "ompi",
    .what = "OMPI_COMM_WORLD_SIZE and mpirun's other variables",
    .given = "OMPI_COMM_WORLD_RANK",
    .identity = {"OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE",
                 "OMPI_MCA_ess_base_jobid", NULL},
    .detect = detect,
    .open = open_ompi,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};
