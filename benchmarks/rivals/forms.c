/* SPDX-License-Identifier: BSD-3-Clause */
/* forms.c - the libraries, each started as its experienced users would start it.
 *
 * If each rank has a core it is bound to it, as Open MPI does by default.  With
 * more ranks than cores the launchers bind nothing (peer_loop.c does, the same
 * for all libraries), and Open MPI is told to yield, as it does by default when
 * it counts the cores right.  Its UCX form must be told that shared memory
 * suffices: by default it wants InfiniBand.  On one host an environment
 * variable tells Open MPI 4 to stay on the loopback; Open MPI 5 does so by
 * default, and would take the argument for a network that it lacks.  Gloo's
 * second thread would share the core with the first, so the kernel places both.
 *
 * On several hosts a library with a launcher is started by it on the first
 * host, any other by tests/net/hosts.  No launcher binds then: each would take
 * all cores for its own host.
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
    .packages = "openmpi-bin libopenmpi-dev",                                  \
    .together = {"/usr/bin/env", "OMPI_MCA_oob_tcp_if_include=lo"},            \
    .across = {"--mca", "oob_tcp_if_include", "eth0",                          \
               "--mca", "plm_rsh_agent",      RSH_THERE,                       \
               "-H",    RANKS_THERE},                                          \
    .bound = {"--bind-to", "core"}, .unbound = {"--bind-to", "none"},          \
    .crowded = {"--mca", "mpi_yield_when_idle", "1"}, .is_for_host = 1

const struct form forms[N_FORMS] = {
    {
        .name = "libcoll",
        .title = "libcoll",
        LIBCOLL,
        .is_for_hosts = 1,
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
        .is_for_hosts = 1,
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
        .is_for_hosts = 1,
    },
    {
        .name = "mpich",
        .title = "MPICH",
        .program = "compare_mpich",
        .launchers = {"mpiexec.mpich", "mpiexec.hydra"},
        .packages = "mpich libmpich-dev",
        .across = {"-launcher", "ssh", "-launcher-exec", RSH_THERE, "-iface",
                   "eth0", "-hosts", RANKS_THERE},
        .bound = {"-bind-to", "core"},
        .is_for_host = 1,
        .is_for_hosts = 1,
    },
    {
        .name = "gloo",
        .title = "Gloo",
        .program = "compare_gloo",
        .launchers = {"collrun"},
        .packages = "libgloo-dev",
        .is_for_host = 1,
        .is_for_hosts = 1,
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
    {
        .name = "encrypt",
        .title = "libcoll, COLL_NET_ENCRYPT=1",
        .program = "compare_coll",
        .launchers = {"collrun"},
        .packages = "none: run make",
        .variable = "COLL_NET_ENCRYPT",
        .is_own = 1,
        .is_for_hosts = 1,
    },
    {
        .name = "sockets",
        .title = "plain sockets",
        .program = "compare_sockets",
        .launchers = {"collrun"},
        .packages = "none: run make",
        .is_measure = 1,
        .is_for_hosts = 1,
    },
};

/* Arguments that an Open MPI launcher gets in any form. */
static const char *const open_mpi[] = {"--allow-run-as-root",
                                       "--oversubscribe"};

int form_is_for(const struct form *form, const struct args *args)
{
    return args->on_gpu    ? form->is_for_gpu
           : args->hosts.n ? form->is_for_hosts
                           : form->is_for_host;
}

/* ---- where the programs are --------------------------------------------- */

static int take(char to[512], const char *folder, size_t len, const char *tail)
{
    int n = snprintf(to, 512, "%.*s/%s", (int)len, folder, tail);

    if (n < 512 && !access(to, X_OK))
        return 1;
    to[0] = '\0';
    return 0;
}

/* Return the folder of this program; in a build tree the real program is in
 * .libs. */
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

int find_ours(char to[512], const char *name)
{
    static const char *const ways[] = {".", "../tools", "../tests/net",
                                       "../libexec/libcoll"};
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

/* Return why this library is not measured. */
static void say_where(const struct args *args, char why[256])
{
    if (args->hosts.n)
        snprintf(why, 256, "it is not measured on several hosts; see --hosts");
    else
        snprintf(why, 256, "it is not measured with buffers on %s",
                 args->on_gpu ? "the GPU; see -d"
                              : "one host; see -d, --hosts");
}

void form_find(const struct form *form, const struct args *args,
               struct place *place)
{
    int is_there = 0;

    memset(place, 0, sizeof(*place));
    place->on_gpu = args->on_gpu;
    place->hosts = args->hosts.n ? &args->hosts : NULL;
    if (!form_is_for(form, args)) {
        say_where(args, place->why);
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

static void write_texts(const struct hosts *hosts, int ranks,
                        struct texts *texts)
{
    int each[MAX_HOSTS], n_each = 0, n_there = 0;

    memset(texts, 0, sizeof(*texts));
    sprintf(texts->ranks, "%d", ranks);
    if (!hosts || !hosts_place(hosts, ranks, each))
        return;
    for (int h = 0; h < hosts->n; h++) {
        n_each += sprintf(texts->each + n_each, "%s%d", h ? "+" : "", each[h]);
        n_there += sprintf(texts->there + n_there, "%sh%d:%d", h ? "," : "",
                           h + 1, each[h]);
    }
}

/* Add what starts the ranks on several hosts, up to the peer. */
static int add_across(const char *line[MAX_WORDS], const struct form *form,
                      const struct place *place, const struct texts *texts)
{
    const struct hosts *hosts = place->hosts;
    const char *const ours[] = {hosts->script, "ranks", hosts->folder,
                                texts->each};
    const char *const theirs[] = {hosts->script, "exec", hosts->folder, "h1",
                                  place->launcher};
    int at = 0;

    if (!form->across[0]) {
        ADD(ours);
        return at;
    }
    ADD(theirs);
    if (!strncmp(form->name, "openmpi", 7))
        ADD(open_mpi);
    ADD(form->settings);
    ADD(form->across);
    for (int i = 0; i < at; i++)
        line[i] = !strcmp(line[i], RANKS_THERE) ? texts->there
                  : !strcmp(line[i], RSH_THERE) ? hosts->rsh
                                                : line[i];
    return at;
}

static int add_together(const char *line[MAX_WORDS], const struct form *form,
                        const struct place *place, int is_crowded)
{
    int at = 0;

    ADD(form->together);
    line[at++] = place->launcher;
    if (!strncmp(form->name, "openmpi", 7))
        ADD(open_mpi);
    ADD(form->settings);
    if (!is_crowded)
        ADD(form->bound);
    return at;
}

void form_line(const struct form *form, const struct place *place, int ranks,
               struct texts *texts, const char *line[MAX_WORDS])
{
    const char *const count[] = {"-n", texts->ranks};
    const char *const peer[] = {place->peer};
    const char *const gpu[] = {PEER_ON_GPU};
    int is_crowded = ranks > cores_list(NULL), at;

    write_texts(place->hosts, ranks, texts);
    at = place->hosts ? add_across(line, form, place, texts)
                      : add_together(line, form, place, is_crowded);
    if (is_crowded || (place->hosts && form->across[0]))
        ADD(form->unbound);
    if (is_crowded)
        ADD(form->crowded);
    if (!place->hosts || form->across[0])
        ADD(count);
    ADD(peer);
    ADD(form->options);
    if (place->on_gpu)
        ADD(gpu);
}
