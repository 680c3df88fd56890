/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules.c - does the CUDA driver of this machine do what libcoll relies on?
 *
 * Each rule is run in a process of its own, this program again with "--rule NAME
 * FD", in a process group that is ended at the rule's limit of time.  The process
 * that gathers never calls the driver: a child forked from one that has would be of
 * no use.
 */
#include "tests/gpu/driver_rules_report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RULES = 256, MAX_JOBS = 16, SKIPPED = 77 };

int rules_allow_managed, rules_is_part;

static const struct rule_file *const files[] = {
    &rules_init,     &rules_context, &rules_pointer, &rules_stream,
    &rules_queue,    &rules_copy,    &rules_memop,   &rules_ipc,
    &rules_ipc_more, &rules_vmm,     &rules_host,    &rules_capture,
    &rules_unsafe,   &rules_graph,   &rules_kernel,  &rules_fault,
    &rules_pool};

static const char usage[] =
    "Usage: driver_rules [OPTION]... [AREA or AREA/RULE]...\n"
    "Tries on device 0 each rule of the CUDA driver that libcoll relies on.\n"
    "  -l, --list         list the rules and their sources\n"
    "  -v, --verbose      print every expectation, not only what differs\n"
    "  -j, --jobs N       so many rules side by side (1)\n"
    "  -t, --time S       a rule's limit of time in seconds (30)\n"
    "      --within S     all of them, in seconds; the rest is left out (600)\n"
    "      --json FILE    write a report\n"
    "      --managed      try managed memory too\n"
    "  -h, --help         this text\n"
    "Exits with 0 when every rule that could be tried holds, 1 when one "
    "differs,\n"
    "2 for wrong arguments, 77 without a driver or a device.\n";

static int is_long, n_jobs = 1; /* --verbose, --jobs */

struct job {
    struct result *result;
    int pid, fd;
    double began;
    char *text;
    size_t len, room;
};

static const struct part *find_part(const char *name)
{
    for (size_t f = 0; f < ARRAY_LEN(files); f++)
        for (size_t i = 0; i < files[f]->n_parts; i++)
            if (!strcmp(files[f]->parts[i].name, name))
                return &files[f]->parts[i];
    return NULL;
}

static const struct rule *find_rule(const char *area_name)
{
    char name[100];

    for (size_t f = 0; f < ARRAY_LEN(files); f++)
        for (size_t i = 0; i < files[f]->n_rules; i++) {
            const struct rule *r = &files[f]->rules[i];

            snprintf(name, sizeof(name), "%s/%s", r->area, r->name);
            if (!strcmp(name, area_name))
                return r;
        }
    return NULL;
}

/* "--rule AREA/NAME" and "--part NAME FD": a process of a rule. */
static int be_child(char **argv)
{
    const char *why;

    report_to(atoi(getenv("DRIVER_RULES_REPORT")));
    rules_allow_managed = getenv("DRIVER_RULES_MANAGED") != NULL;
    rules_is_part = !strcmp(argv[1], "--part");
    why = gpu_open();
    if (why)
        cannot("%s", why);
    if (rules_is_part) {
        find_part(argv[2])->run(atoi(argv[3]));
        _exit(0);
    }
    find_rule(argv[2])->run();
    report_end();
    _exit(0);
}

static int job_start(struct job *job, struct result *result)
{
    char name[100], fd[16];
    int ends[2];

    if (pipe(ends))
        return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    snprintf(name, sizeof(name), "%s/%s", result->rule->area,
             result->rule->name);
    memset(job, 0, sizeof(*job));
    job->result = result;
    job->fd = ends[0];
    job->began = gpu_now();
    job->room = 1 << 16;
    job->text = calloc(1, job->room);
    job->pid = fork();
    if (job->pid == 0) {
        setpgid(0, 0);
        snprintf(fd, sizeof(fd), "%d", ends[1]);
        setenv("DRIVER_RULES_REPORT", fd, 1);
        execl("/proc/self/exe", "driver_rules", "--rule", name, (char *)NULL);
        _exit(97);
    }
    setpgid(job->pid, job->pid);
    close(ends[1]);
    return 0;
}

/* End the whole group: what a rule started must not outlive it. */
static void job_finish(struct job *job, int is_late)
{
    int status = 0;

    if (is_late)
        kill(-job->pid, SIGKILL);
    waitpid(job->pid, &status, 0);
    kill(-job->pid, SIGKILL);
    job->result->seconds = gpu_now() - job->began;
    result_read(job->result, job->text, is_late ? -1 : status);
    close(job->fd);
    free(job->text);
    job->pid = 0;
}

/* Read what has come; 1 when the rule's last line has, or its processes are gone. */
static int job_read(struct job *job)
{
    ssize_t n;

    if (job->len + 4096 > job->room) {
        job->room *= 2;
        job->text = realloc(job->text, job->room);
    }
    n = read(job->fd, job->text + job->len, 4095);
    if (n <= 0)
        return 1;
    job->len += (size_t)n;
    job->text[job->len] = '\0';
    return !strncmp(job->text, "E\n", 2) || strstr(job->text, "\nE\n");
}

static void jobs_wait(struct job *jobs, const struct gpu_options *o)
{
    struct pollfd polls[MAX_JOBS];

    for (int i = 0; i < n_jobs; i++)
        polls[i] = (struct pollfd){jobs[i].pid ? jobs[i].fd : -1, POLLIN, 0};
    poll(polls, (nfds_t)n_jobs, 200);
    for (int i = 0; i < n_jobs; i++) {
        struct job *job = &jobs[i];
        int is_late, is_over = 0;

        if (!job->pid)
            continue;
        if (polls[i].revents)
            is_over = job_read(job);
        is_late = !is_over &&
                  (gpu_now() - job->began > o->seconds || gpu_now() > o->until);
        if (is_over || is_late) {
            struct result *r = job->result;

            job_finish(job, is_late);
            report_table(r, is_long);
        }
    }
}

/* A rule for which no time is left. */
static void leave_out(struct result *r)
{
    char text[] = "N\t0\tno time was left\nE\n";

    result_read(r, text, 0);
    report_table(r, is_long);
}

static void run_all(struct result *results, size_t n,
                    const struct gpu_options *o)
{
    struct job jobs[MAX_JOBS];
    size_t next = 0;
    int busy;

    memset(jobs, 0, sizeof(jobs));
    do {
        busy = 0;
        for (int i = 0; i < n_jobs; i++) {
            while (next < n && gpu_now() > o->until)
                leave_out(&results[next++]);
            if (!jobs[i].pid && next < n)
                job_start(&jobs[i], &results[next++]);
            busy += jobs[i].pid != 0;
        }
        if (busy)
            jobs_wait(jobs, o);
    } while (busy);
}

static int is_chosen(const struct rule *r, const struct gpu_options *o)
{
    char name[100];

    snprintf(name, sizeof(name), "%s/%s", r->area, r->name);
    return gpu_is_chosen(o, r->area, name);
}

static size_t choose(struct result *results, const struct gpu_options *o)
{
    size_t n = 0;

    for (size_t f = 0; f < ARRAY_LEN(files); f++)
        for (size_t i = 0; i < files[f]->n_rules; i++)
            if (is_chosen(&files[f]->rules[i], o) && n < MAX_RULES)
                results[n++] = (struct result){.rule = &files[f]->rules[i]};
    return n;
}

static int list(const struct result *results, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%s/%s\n    %s\n    [%s]\n", results[i].rule->area,
               results[i].rule->name, results[i].rule->text,
               results[i].rule->cite);
    return 0;
}

static int summarise(const struct gpu_found *m, const struct gpu_options *o,
                     const struct result *results, size_t n)
{
    size_t counts[3] = {0};

    for (size_t i = 0; i < n; i++)
        counts[results[i].outcome]++;
    printf(
        "%s, driver of CUDA %d.%d: %zu rules hold, %zu differ, %zu cannot be "
        "tried\n",
        m->name, m->cuda / 1000, m->cuda % 1000 / 10, counts[HOLDS],
        counts[DIFFERS], counts[CANNOT]);
    if (o->json && report_json(o->json, m, results, n)) {
        fprintf(stderr, "driver_rules: cannot write %s: %s\n", o->json,
                strerror(errno));
        return 2;
    }
    return counts[DIFFERS] ? 1 : 0;
}

static void take(struct gpu_options *o, int c, const char *value)
{
    (void)o;
    if (c == 'v')
        is_long = 1;
    else if (c == 'j')
        n_jobs = atoi(value);
    else
        setenv("DRIVER_RULES_MANAGED", "1", 1);
}

static const struct option own[] = {{"verbose", 0, 0, 'v'},
                                    {"jobs", 1, 0, 'j'},
                                    {"managed", 0, 0, 'm'},
                                    {NULL, 0, NULL, 0}};

int main(int argc, char **argv)
{
    static struct result results[MAX_RULES];
    struct gpu_options o = {.program = "driver_rules",
                            .usage = usage,
                            .seconds = 30,
                            .within = 600,
                            .own_letters = "vj:",
                            .own = own,
                            .take = take};
    struct gpu_found m;
    int status;
    size_t n;

    if (argc > 1 && !strcmp(argv[1], "--probe"))
        return gpu_probe_main();
    if (argc > 2 && (!strcmp(argv[1], "--rule") || !strcmp(argv[1], "--part")))
        return be_child(argv);
    status = gpu_parse(argc, argv, &o);
    if (status >= 0)
        return status;
    if (n_jobs < 1 || n_jobs > MAX_JOBS)
        return gpu_wrong(&o, "--jobs is 1 to 16", "");
    n = choose(results, &o);
    if (!n)
        return gpu_wrong(&o, "no rule ", o.names[0]);
    if (o.is_list)
        return list(results, n);
    gpu_probe(&m);
    if (*m.why) {
        printf("driver_rules: skipped: %s\n", m.why);
        return SKIPPED;
    }
    o.until = gpu_now() + o.within;
    run_all(results, n, &o);
    return summarise(&m, &o, results, n);
}
