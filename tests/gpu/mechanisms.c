/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms.c - what the ways of moving bytes between ranks cost on one GPU.
 *
 * Each measurement's ranks are processes (or threads of one), this program again;
 * this process only starts them, waits with a limit of time, and prints.  With --mps
 * measurements of several processes are made again under NVIDIA's Multi-Process
 * Service, started in a folder of its own and stopped afterwards.
 */
#include "tests/gpu/mechanisms.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, MAX_RUNS = 64 };

static const struct measurement_list *const lists[] = {&of_costs, &of_flags,
                                                       &of_kernels, &of_copies};

static const char usage[] =
    "Usage: mechanisms [OPTION]... [NAME]...\n"
    "Measures on device 0 the ways in which ranks can exchange bytes.\n"
    "  -l, --list         list the measurements and what was predicted\n"
    "  -t, --time S       a measurement's limit of time in seconds (60)\n"
    "      --within S     all of them, in seconds; the rest is left out (600)\n"
    "      --mps          measure processes under MPS too\n"
    "      --json FILE    write a report\n"
    "  -h, --help         this text\n"
    "Exits with 0 when everything was measured, 1 when something could not "
    "be,\n"
    "2 for wrong arguments, 77 without a driver or a device.\n";

static int with_service; /* --mps */

struct made {
    const struct measurement *m;
    const char *how; /* "threads", "processes", "processes, mps" */
    struct share *share;
    int is_whole;
};

static const struct measurement *find(const char *name, int ranks, int threads)
{
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++) {
            const struct measurement *m = &lists[l]->all[i];

            if (!strcmp(m->name, name) && m->ranks == ranks &&
                m->is_threads == threads)
                return m;
        }
    return NULL;
}

static struct share *map_share(int fd)
{
    void *at = mmap(NULL, (sizeof(struct share) + 4095) / 4096 * 4096,
                    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

struct start {
    const struct measurement *m;
    struct rank rank;
};

static void *thread_main(void *arg)
{
    struct start *start = arg;

    rank_run(start->m, &start->rank);
    return NULL;
}

/* "--rank NAME RANKS IS_THREADS RANK FD": one rank, or all as threads. */
static int be_ranks(char **argv)
{
    int n = atoi(argv[3]), is_threads = atoi(argv[4]), rank = atoi(argv[5]);
    struct start starts[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    struct share *share = map_share(atoi(argv[6]));
    const char *why = gpu_open();

    memset(starts, 0, sizeof(starts));
    for (int i = 0; i < n; i++) {
        starts[i].m = find(argv[2], n, is_threads);
        starts[i].rank.n = n;
        starts[i].rank.rank = is_threads ? i : rank;
        starts[i].rank.is_thread = is_threads;
        starts[i].rank.share = share;
    }
    if (why)
        rank_fail(&starts[0].rank, why);
    if (!is_threads) {
        rank_run(starts[0].m, &starts[0].rank);
        _exit(0);
    }
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, thread_main, &starts[i]);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

static void spawn(const struct measurement *m, int rank, int fd, int *group,
                  int *pid)
{
    char texts[4][16];

    snprintf(texts[0], 16, "%d", m->ranks);
    snprintf(texts[1], 16, "%d", m->is_threads);
    snprintf(texts[2], 16, "%d", rank);
    snprintf(texts[3], 16, "%d", fd);
    *pid = fork();
    if (*pid == 0) {
        setpgid(0, *group);
        execl("/proc/self/exe", "mechanisms", "--rank", m->name, texts[0],
              texts[1], texts[2], texts[3], (char *)NULL);
        _exit(97);
    }
    setpgid(*pid, *group);
    if (!*group)
        *group = *pid;
}

/* Wait for n processes, then end the group, as it must when time is up. */
static int wait_for(const int *pids, int n, int group, int seconds)
{
    double until = gpu_now() + seconds;
    int is_good = 1, left = n, over[MAX_RANKS] = {0};

    while (left && gpu_now() < until) {
        for (int i = 0; i < n; i++) {
            int status;

            if (over[i] || waitpid(pids[i], &status, WNOHANG) != pids[i])
                continue;
            over[i] = 1;
            left--;
            is_good = is_good && WIFEXITED(status) && !WEXITSTATUS(status);
        }
        usleep(2000);
    }
    kill(-group, SIGKILL);
    for (int i = 0; i < n; i++)
        if (!over[i])
            waitpid(pids[i], NULL, 0);
    return is_good && !left;
}

static void make(struct made *made, const struct measurement *m,
                 const char *how, const struct gpu_options *o)
{
    double left = o->until - gpu_now();
    int seconds = left < o->seconds ? (int)left : o->seconds;
    int fd = memfd_create("mechanisms", 0), group = 0, pids[MAX_RANKS];
    int n = m->is_threads ? 1 : m->ranks;

    made->m = m;
    made->how = how;
    if (fd < 0 || ftruncate(fd, (sizeof(struct share) + 4095) / 4096 * 4096) ||
        !(made->share = map_share(fd))) {
        perror("mechanisms: no shared segment");
        exit(1);
    }
    if (seconds < 1)
        n = 0;
    for (int i = 0; i < n; i++)
        spawn(m, i, fd, &group, &pids[i]);
    made->is_whole = n && wait_for(pids, n, group, seconds);
    if (!made->is_whole && !*made->share->why)
        snprintf(made->share->why, sizeof(made->share->why),
                 n ? "a rank died or %d s were not enough"
                   : "no time was left, %d s",
                 seconds);
    close(fd);
}

static int n_figures(const struct made *made)
{
    int n = atomic_load(&made->share->n_figures);

    return n < MAX_FIGURES ? n : MAX_FIGURES;
}

static void print(const struct made *made)
{
    printf("%s, %d %s\n  predicted: %s\n", made->m->name, made->m->ranks,
           made->how, made->m->predicts);
    for (int i = 0; i < n_figures(made); i++) {
        const struct figure *f = &made->share->figures[i];

        printf("  %10.3f %-5s %s\n", f->value, f->unit, f->name);
    }
    if (!made->is_whole)
        printf("  not whole: %s\n", made->share->why);
    fflush(stdout);
}

static void put_made(FILE *f, const struct made *made, int is_last)
{
    fprintf(f, "    {\"name\": \"%s\", \"ranks\": %d, \"as\": \"%s\",\n",
            made->m->name, made->m->ranks, made->how);
    fputs("     \"predicted\": ", f);
    gpu_put_json(f, made->m->predicts);
    if (!made->is_whole) {
        fputs(",\n     \"not_whole\": ", f);
        gpu_put_json(f, made->share->why);
    }
    fputs(",\n     \"figures\": [", f);
    for (int i = 0; i < n_figures(made); i++) {
        const struct figure *figure = &made->share->figures[i];

        fputs(i ? ",\n      {\"name\": " : "\n      {\"name\": ", f);
        gpu_put_json(f, figure->name);
        fprintf(f, ", \"value\": %.4g, \"unit\": \"%s\"}", figure->value,
                figure->unit);
    }
    fputs(is_last ? "]}\n" : "]},\n", f);
}

static int write_json(const char *path, const struct gpu_found *found,
                      const struct made *all, int n)
{
    FILE *f = fopen(path, "w");

    if (!f) {
        fprintf(stderr, "mechanisms: cannot write %s: %s\n", path,
                strerror(errno));
        return -1;
    }
    gpu_put_head(f, "mechanisms", found);
    fputs("  \"measurements\": [\n", f);
    for (int i = 0; i < n; i++)
        put_made(f, &all[i], i + 1 == n);
    fputs("  ]\n}\n", f);
    return fclose(f);
}

/* The service in a folder of its own; its clients find it by the environment. */
static int mps_start(char *folder)
{
    char line[300];
    int status;

    if (!mkdtemp(folder))
        return -1;
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", folder, 1);
    status = system("nvidia-cuda-mps-control -d");
    if (status) {
        printf("MPS could not be started here (status %d)\n", status);
        unsetenv("CUDA_MPS_PIPE_DIRECTORY");
        unsetenv("CUDA_MPS_LOG_DIRECTORY");
        snprintf(line, sizeof(line), "rm -r '%s'", folder);
        if (system(line))
            printf("its folder is left: %s\n", folder);
        return -1;
    }
    return 0;
}

static void mps_stop(const char *folder)
{
    char line[300];

    snprintf(line, sizeof(line),
             "echo quit | nvidia-cuda-mps-control; sleep 1; rm -r '%s'",
             folder);
    if (system(line))
        printf("MPS did not stop as it should; its folder is %s\n", folder);
}

/* with_mps: only what MPS can change. */
static int make_all(struct made *all, int n, const struct gpu_options *o,
                    int with_mps)
{
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n && n < MAX_RUNS; i++) {
            const struct measurement *m = &lists[l]->all[i];

            if (!gpu_is_chosen(o, m->name, NULL) ||
                (with_mps && (m->is_threads || m->ranks == 1)))
                continue;
            make(&all[n], m,
                 with_mps        ? "processes, mps"
                 : m->is_threads ? "threads"
                                 : "processes",
                 o);
            print(&all[n++]);
        }
    return n;
}

static int list_all(const struct gpu_options *o)
{
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++) {
            const struct measurement *m = &lists[l]->all[i];

            if (gpu_is_chosen(o, m->name, NULL))
                printf("%s, %d %s\n    predicted: %s\n", m->name, m->ranks,
                       m->is_threads ? "threads" : "processes", m->predicts);
        }
    return 0;
}

static int is_name(const char *name)
{
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            if (!strcmp(lists[l]->all[i].name, name))
                return 1;
    return 0;
}

static void take(struct gpu_options *o, int c, const char *value)
{
    (void)o;
    (void)c;
    (void)value;
    with_service = 1;
}

static const struct option own[] = {{"mps", 0, 0, 'm'}, {NULL, 0, NULL, 0}};

/* The status to exit with, or -1 to go on. */
static int parse(int argc, char **argv, struct gpu_options *o)
{
    int status = gpu_parse(argc, argv, o);

    for (int i = 0; i < o->n_names && status < 0; i++)
        if (!is_name(o->names[i]))
            status = gpu_wrong(o, "no measurement ", o->names[i]);
    return status;
}

int main(int argc, char **argv)
{
    static struct made all[MAX_RUNS];
    struct gpu_options o = {.program = "mechanisms",
                            .usage = usage,
                            .seconds = 60,
                            .within = 600,
                            .own_letters = "",
                            .own = own,
                            .take = take};
    struct gpu_found found;
    char folder[] = "/tmp/mechanisms-mps-XXXXXX";
    int status, n, is_whole = 1;

    if (argc > 1 && !strcmp(argv[1], "--probe"))
        return gpu_probe_main();
    if (argc > 6 && !strcmp(argv[1], "--rank"))
        return be_ranks(argv);
    status = parse(argc, argv, &o);
    if (status >= 0)
        return status;
    if (o.is_list)
        return list_all(&o);
    gpu_probe(&found);
    if (*found.why) {
        printf("mechanisms: skipped: %s\n", found.why);
        return SKIPPED;
    }
    printf("%s, driver of CUDA %d.%d\n", found.name, found.cuda / 1000,
           found.cuda % 1000 / 10);
    o.until = gpu_now() + o.within;
    n = make_all(all, 0, &o, 0);
    if (with_service && !mps_start(folder)) {
        n = make_all(all, n, &o, 1);
        mps_stop(folder);
    }
    if (o.json && write_json(o.json, &found, all, n))
        return 2;
    for (int i = 0; i < n; i++)
        is_whole = is_whole && all[i].is_whole;
    return is_whole ? 0 : 1;
}
