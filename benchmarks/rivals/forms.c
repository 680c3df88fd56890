/* SPDX-License-Identifier: BSD-3-Clause */
/* forms.c - the libraries, each as somebody who knows it would start it.
 *
 * When each rank has a core it is bound to it, as Open MPI does of itself.
 * With more ranks than cores the launchers bind nothing (peer_loop.c does, for all
 * libraries alike), and Open MPI is told to yield, as it does of itself where it
 * counts right.  Its UCX form has to be told that
 * shared memory will do: by default it wants InfiniBand.  Gloo's second thread
 * would share the core with the first, so it is left to the kernel.
 */
#include "benchmarks/rivals/compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBCOLL                                                                \
    .program = "compare_coll", .launchers = {"collrun"},                       \
    .packages = "none: run make", .bound = {"--bind", "core"}, .is_own = 1,    \
    .is_for_host = 1

#define OPEN_MPI                                                               \
    .program = "compare_openmpi", .launchers = {"mpirun.openmpi", "mpirun"},   \
    .packages = "openmpi-bin libopenmpi-dev", .bound = {"--bind-to", "core"},  \
    .crowded = {"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},     \
    .is_for_host = 1

const struct form forms[N_FORMS] = {
    {
        .name = "libcoll",
        .title = "libcoll",
        LIBCOLL,
        .is_for_gpu = 1,
    },
    {
        .name = "coll-mem",
        .title = "libcoll, buffers from coll_mem_alloc",
        LIBCOLL,
        .options = {PEER_OWN_MEMORY},
    },
    {
        .name = "openmpi",
        .title = "Open MPI",
        OPEN_MPI,
    },
    {
        .name = "openmpi-sm",
        .title = "Open MPI, coll_sm_priority 100",
        OPEN_MPI,
        .settings = {"--mca", "coll_sm_priority", "100"},
    },
    {
        .name = "openmpi-ucx",
        .title = "Open MPI, pml ucx",
        OPEN_MPI,
        .settings = {"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
                     "--mca", "pml_ucx_devices", "any"},
    },
    {
        .name = "mpich",
        .title = "MPICH",
        .program = "compare_mpich",
        .launchers = {"mpiexec.mpich", "mpiexec.hydra"},
        .packages = "mpich libmpich-dev",
        .bound = {"-bind-to", "core"},
        .is_for_host = 1,
    },
    {
        .name = "gloo",
        .title = "Gloo",
        .program = "compare_gloo",
        .launchers = {"collrun"},
        .packages = "libgloo-dev",
        .is_for_host = 1,
    },
    {
        .name = "nccl",
        .title = "NCCL",
        .program = "compare_nccl",
        .launchers = {"collrun"},
        .packages = "libnccl-dev, of NVIDIA's repository",
        .is_for_gpu = 1,
        .is_alone = 1,
    },
};

/* Arguments that an Open MPI launcher gets in any form. */
static const char *const open_mpi[] = {"--allow-run-as-root", "--oversubscribe",
                                       "--mca", "oob_tcp_if_include", "lo"};

/* ---- where the programs are --------------------------------------------- */

static int take(char to[512], const char *folder, size_t len, const char *tail)
{
    int n = snprintf(to, 512, "%.*s/%s", (int)len, folder, tail);

    if (n < 512 && !access(to, X_OK))
        return 1;
    to[0] = '\0';
    return 0;
}

/* The folder of this very program; in a build tree the real one is in .libs. */
static void own_folder(char folder[512])
{
    ssize_t n = readlink("/proc/self/exe", folder, 511);

    folder[n > 0 ? n : 0] = '\0';
    if (strrchr(folder, '/'))
        *strrchr(folder, '/') = '\0';
}

static int find_in_path(char to[512], const char *name)
{
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t len = strcspn(path, ":");

        if (len && take(to, path, len, name))
            return 1;
        path += len + (path[len] == ':');
    }
    return 0;
}

/* Beside this program, in the build tree, or where they are installed. */
static int find_ours(char to[512], const char *name)
{
    static const char *const ways[] = {".", "../tools", "../libexec/libcoll"};
    char folder[512], tail[128];

    own_folder(folder);
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        snprintf(tail, sizeof(tail), "%s/%s", ways[i], name);
        if (take(to, folder, strlen(folder), tail))
            return 1;
    }
    return take(to, COLL_LIBEXEC, strlen(COLL_LIBEXEC), name) ||
           find_in_path(to, name);
}

void form_find(const struct form *form, int on_gpu, struct place *place)
{
    int is_there = 0;

    memset(place, 0, sizeof(*place));
    place->on_gpu = on_gpu;
    if (!(on_gpu ? form->is_for_gpu : form->is_for_host)) {
        snprintf(place->why, sizeof(place->why),
                 "it is not measured with buffers on the %s; see -d",
                 on_gpu ? "GPU" : "host");
        return;
    }
    for (int i = 0; form->launchers[i] && !is_there; i++)
        is_there = strcmp(form->launchers[i], "collrun")
                       ? find_in_path(place->launcher, form->launchers[i])
                       : find_ours(place->launcher, form->launchers[i]);
    if (!is_there)
        snprintf(place->why, sizeof(place->why),
                 "%s was not found (Debian: %s)", form->launchers[0],
                 form->packages);
    else if (!find_ours(place->peer, form->program))
        snprintf(place->why, sizeof(place->why),
                 "%s was not built (Debian: %s; then configure again)",
                 form->program, form->packages);
}

/* ---- the line ----------------------------------------------------------- */

static int add(const char *line[MAX_WORDS], int at, const char *const *words,
               int n)
{
    for (int i = 0; i < n && words[i] && at < MAX_WORDS - 1; i++)
        line[at++] = words[i];
    line[at] = NULL;
    return at;
}

#define ADD(words)                                                             \
    at = add(line, at, words, (int)(sizeof(words) / sizeof(*(words))))

void form_line(const struct form *form, const struct place *place, int ranks,
               char *ranks_text, const char *line[MAX_WORDS])
{
    const char *const end[] = {"-n", ranks_text, place->peer};
    const char *const gpu[] = {PEER_ON_GPU};
    int at = 0;

    sprintf(ranks_text, "%d", ranks);
    line[at++] = place->launcher;
    if (!strncmp(form->name, "openmpi", 7))
        ADD(open_mpi);
    ADD(form->settings);
    if (ranks <= cores_list(NULL))
        ADD(form->bound);
    else
        ADD(form->crowded);
    ADD(end);
    ADD(form->options);
    if (place->on_gpu)
        ADD(gpu);
}
