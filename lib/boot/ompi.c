/* SPDX-License-Identifier: BSD-3-Clause */
/* ompi.c - ranks that Open MPI's mpirun started, where libcoll was built without
 * PMIx: mpirun's variables say who there is but not where rank 0 is, so this is for
 * jobs of one host.  Open MPI 4 gives its ranks a random key besides.
 */
#include "lib/boot/tcp.h"
#include "lib/boot/word.h"
#include "lib/trace/log.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_uint n_opened; /* as in env.c */

static int detect(void) { return *coll__word_of("OMPI_COMM_WORLD_SIZE") != 0; }

static int check_hosts(int size)
{
    long local;
    int status =
        coll__word_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, size, &local);

    if (status || local == size)
        return status;
    log_error("boot",
              "Open MPI's mpirun started %ld of %d ranks on this host, and a "
              "libcoll without PMIx cannot find the others; build it with PMIx "
              "(Debian: apt-get install libpmix-dev)",
              local, size);
    return COLL_ERR_BOOTSTRAP;
}

static int fill_in(struct coll__tcp_spec *spec)
{
    char words[400];
    int status;

    snprintf(words, sizeof(words), "ompi %.100s %.100s %.100s %d",
             coll__word_of("PMIX_NAMESPACE"),
             coll__word_of("OMPI_MCA_ess_base_jobid"),
             coll__word_of("OMPI_MCA_orte_precondition_transports"),
             spec->size);
    spec->n_ports = COLL__MAX_PORTS;
    spec->remedy = COLL__WORD_REMEDY;
    status = coll__tcp_resolve(spec, "localhost", coll__tcp_port_of(words));
    return status ? status
                  : coll__word_secret(words, "mpirun", 0, spec->secret);
}

static int open_ompi(struct coll__boot *boot)
{
    struct coll__tcp_spec spec = {.listen_fd = -1};
    int status = coll__word_place(
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &spec.rank, &spec.size);

    if (!status)
        status = check_hosts(spec.size);
    if (!status)
        status = fill_in(&spec);
    return status ? status : coll__tcp_meet_again(boot, &spec, &n_opened);
}

const struct coll__boot_ops coll__boot_ompi = {
    .name = "ompi",
    .what = "OMPI_COMM_WORLD_SIZE and mpirun's other variables",
    .given = "OMPI_COMM_WORLD_RANK",
    .detect = detect,
    .open = open_ompi,
    .places = coll__tcp_places,
    .tell = coll__tcp_tell,
    .close = coll__tcp_close,
};
