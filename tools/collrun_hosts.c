/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_hosts.c - ranks on several hosts: hand over to the launcher found: srun inside
 * a Slurm allocation, else mpirun (Open MPI's, or hydra of MPICH and Intel MPI). */
#include "tools/collrun_hosts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Never freed: the program ends by exec. */
static struct hosts all_hosts;

/* An argument vector that grows. */
struct words {
    char **word;
    size_t n, room;
};

static void add(struct words *words, const char *word)
{
    if (words->n + 1 >= words->room) {
        words->room = 2 * words->room + 32;
        words->word = realloc(words->word, words->room * sizeof(char *));
        if (!words->word) {
            complain("out of memory");
            exit(EXIT_FAILURE);
        }
    }
    words->word[words->n++] = (char *)word; /* exec takes it so, unchanged */
    words->word[words->n] = NULL;
}

static char *print(const char *format, const char *text, int n)
{
    size_t len = strlen(format) + strlen(text) + 32;
    char *out = malloc(len);

    if (!out) {
        complain("out of memory");
        exit(EXIT_FAILURE);
    }
    snprintf(out, len, format, text, n);
    return out;
}

/* Is the program on the PATH? */
static int is_there(const char *program)
{
    const char *path = getenv("PATH");
    char *list = path ? strdup(path) : NULL, *rest = list, *folder;
    char file[PATH_MAX];
    int found = 0;

    while (!found && rest && (folder = strsep(&rest, ":"))) {
        snprintf(file, sizeof(file), "%s/%s", folder, program);
        found = !access(file, X_OK);
    }
    free(list);
    return found;
}

/* Write a file with a host name for each rank.  srun would sort a list of nodes, and
 * Intel MPI takes no rank counts in a list; both keep to a file.  The launcher inherits
 * it.  Returns its path, or NULL after an error message. */
static char *write_hostfile(const struct hosts *hosts)
{
    int fd = memfd_create("hosts", 0);
    FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");

    if (!file) {
        complain("cannot write a list of hosts for the launcher");
        return NULL;
    }
    for (int i = 0; i < hosts->n_hosts; i++)
        for (int r = 0; r < hosts->host[i].n; r++)
            fprintf(file, "%s\n", hosts->host[i].name);
    fclose(file);
    return print("/proc/self/fd/%s%d", "", fd);
}

static int build_srun(const struct hosts *hosts, struct words *words)
{
    const char *file = write_hostfile(hosts);

    add(words, "srun");
    add(words, "--mpi=pmix");
    add(words, print("-n%s%d", "", hosts->n_ranks));
    add(words, print("-N%s%d", "", hosts->n_hosts));
    add(words, "--distribution=arbitrary");
    return file ? setenv("SLURM_HOSTFILE", file, 1) : -1;
}

/* List a host name for each rank: mpirun, too, would sort hosts given with counts. */
static char *list_hosts(const struct hosts *hosts)
{
    char *list = NULL;
    size_t len;
    FILE *file = open_memstream(&list, &len);

    for (int i = 0; file && i < hosts->n_hosts; i++)
        for (int r = 0; r < hosts->host[i].n; r++)
            fprintf(file, "%s%s", i || r ? "," : "", hosts->host[i].name);
    if (!file || fclose(file) || !list) {
        complain("out of memory");
        exit(EXIT_FAILURE);
    }
    return list;
}

/* An IPv6 address has colons, which end a name in mpirun's lists. */
static int has_addresses(const struct hosts *hosts)
{
    for (int i = 0; i < hosts->n_hosts; i++)
        if (strchr(hosts->host[i].name, ':'))
            return 1;
    return 0;
}

/* Does mpirun pass this variable on?  `variable` is NAME=VALUE or NAME. */
static int goes_along(const char *variable)
{
    return !strncmp(variable, "COLL_", 5) || !strncmp(variable, "UCX_", 4) ||
           !strncmp(variable, "PATH=", 5) || !strcmp(variable, "PATH");
}

/* mpirun passes only the variables that it is told to other hosts.  PATH is needed there
 * to find a program given by its name alone.  Ranks are not bound, as on one machine;
 * else Open MPI 5 would refuse more ranks than a host has cores. */
static int build_open_mpi(const struct options *options,
                          const struct hosts *hosts, struct words *words)
{
    char *file = has_addresses(hosts) ? write_hostfile(hosts) : NULL;

    if (has_addresses(hosts) && !file)
        return -1;
    add(words, "mpirun");
    add(words, "-np");
    add(words, print("%s%d", "", hosts->n_ranks));
    add(words, file ? "--hostfile" : "-H");
    add(words, file ? file : list_hosts(hosts));
    add(words, "--map-by");
    add(words, "seq");
    add(words, "--bind-to");
    add(words, "none");
    for (char **e = environ; *e; e++)
        if (goes_along(*e)) {
            add(words, "-x");
            add(words, strndup(*e, strcspn(*e, "=")));
        }
    for (int i = 0; i < options->n_variables; i++)
        if (!goes_along(options->variables[i])) {
            add(words, "-x");
            add(words, options->variables[i]);
        }
    return 0;
}

/* Is the mpirun on the PATH hydra? */
static int is_hydra(void)
{
    FILE *answer = popen("mpirun --version 2>&1 < /dev/null", "r");
    char line[1024];
    int found = 0;

    while (answer && fgets(line, sizeof(line), answer))
        found |= strstr(line, "HYDRA") || strstr(line, "Intel(R) MPI");
    if (answer)
        pclose(answer);
    return found;
}

static int build_hydra(const struct hosts *hosts, struct words *words)
{
    const char *file;

    if (has_addresses(hosts)) {
        complain("the mpirun of MPICH and Intel MPI takes no IPv6 addresses; "
                 "name these hosts, in /etc/hosts for instance");
        return -1;
    }
    file = write_hostfile(hosts);
    add(words, "mpirun");
    add(words, "-n");
    add(words, print("%s%d", "", hosts->n_ranks));
    add(words, "-machinefile");
    add(words, file);
    add(words, "-genvall"); /* all variables go along */
    return file ? 0 : -1;
}

/* srun and mpirun cannot copy output to files and choose GPUs as collrun does.  For these
 * options they start one collrun for each rank, which does both. */
static void add_within(const struct options *options, const struct hosts *hosts,
                       struct words *words)
{
    static char self[PATH_MAX];

    if (!options->output_folder && !hosts_chose_slots(hosts))
        return;
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        snprintf(self, sizeof(self), "collrun");
    add(words, self);
    add(words, print("--within=%s%d", "", hosts->n_ranks));
    if (options->output_folder)
        add(words, print("--output-filename=%s", options->output_folder, 0));
    if (hosts_chose_slots(hosts))
        add(words, print("--slots=%s", hosts_write_slots(hosts), 0));
    add(words, "--");
}

static int is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

int hosts_run(const struct options *options)
{
    struct hosts *hosts = &all_hosts;
    struct words words = {NULL, 0, 0};

    if (hosts_read(options, hosts))
        return EXIT_USAGE;
    if (options->max_restarts || options->timeout > 0 || options->is_bound)
        complain("--max-restarts, --timeout and --bind hold for ranks on this "
                 "machine only; srun and mpirun have options of their own");
    if (is_set("SLURM_JOB_ID") && is_there("srun")) {
        if (build_srun(hosts, &words))
            return EXIT_FAILURE;
    } else if (!is_there("mpirun")) {
        complain("ranks on several hosts need srun (inside a Slurm "
                 "allocation) or mpirun, and neither is there; install Open "
                 "MPI (Debian: apt-get install openmpi-bin)");
        return EXIT_FAILURE;
    } else if (is_hydra() ? build_hydra(hosts, &words)
                          : build_open_mpi(options, hosts, &words)) {
        return EXIT_FAILURE;
    }
    add_within(options, hosts, &words);
    for (char **word = options->command; *word; word++)
        add(&words, *word);
    execvp(words.word[0], words.word);
    complain("cannot run %s", words.word[0]);
    return EXIT_FAILURE;
}
