/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_tools.c - what the rules are written with. */
#include "tests/gpu/driver_rules_report.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* "cu.MemAlloc(...)" is cuMemAlloc(...) to everybody else. */
static void name_call(char *to, size_t room, const char *call)
{
    size_t n = 0;

    for (; *call && n + 1 < room; call++) {
        if (*call == ' ' && n && to[n - 1] == '(')
            continue; /* the call was broken there */
        to[n++] = *call;
        if (n >= 3 && !strncmp(to + n - 3, "cu.", 3) &&
            (n == 3 || to[n - 4] == ' ' || to[n - 4] == '('))
            n--;
    }
    to[n] = '\0';
}

void want_code(const char *call, CUresult want, CUresult got)
{
    char name[200];

    name_call(name, sizeof(name), call);
    report_line('W', want == got, name, gpu_code(want), gpu_code(got));
}

/* Only the rule's own process says that the rule has ended. */
static _Noreturn void end_early(void)
{
    if (!rules_is_part)
        report_end();
    _exit(0);
}

void must(const char *call, CUresult got)
{
    if (got == CUDA_SUCCESS)
        return;
    want_code(call, CUDA_SUCCESS, got);
    end_early();
}

void want_true(const char *what, int holds)
{
    report_line('W', !!holds, what, "yes", holds ? "yes" : "no");
}

void want_number(const char *what, long long want, long long got)
{
    char texts[2][32];

    snprintf(texts[0], sizeof(texts[0]), "%lld", want);
    snprintf(texts[1], sizeof(texts[1]), "%lld", got);
    report_line('W', want == got, what, texts[0], texts[1]);
}

void want_refused(const char *call, CUresult got)
{
    char name[200];

    name_call(name, sizeof(name), call);
    report_line('W', got != CUDA_SUCCESS, name, "an error", gpu_code(got));
}

void want_text(const char *what, const char *want, const char *got)
{
    char name[200];

    name_call(name, sizeof(name), what);
    report_line('W', !strcmp(want, got), name, want, got);
}

void seen(const char *what, const char *format, ...)
{
    char text[200];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report_line('S', 1, what, "", text);
}

void seen_code(const char *what, CUresult got)
{
    seen(what, "%s", gpu_code(got));
}

void seen_end(const char *what, CUstream capturing)
{
    CUgraph graph;

    seen_code(what, cu.StreamEndCapture(capturing, &graph));
}

void cannot(const char *format, ...)
{
    char text[200];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report_line('N', 1, text, "", "");
    end_early();
}

/* Words and gates come from one piece of pinned memory that is there from the start:
 * allocating while a stream waits is what some rules ask about. */
enum { POOL_WORDS = 64 << 10, APART = 16 };
static struct words pool;
static size_t pool_used;

CUcontext start(void)
{
    CUcontext ctx = NULL;
    void *at = NULL;

    must("cuInit and the primary context", gpu_start(&ctx));
    must("cuMemHostAlloc",
         cu.MemHostAlloc(&at, POOL_WORDS * sizeof(uint32_t),
                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    memset(at, 0, POOL_WORDS * sizeof(uint32_t));
    pool.host = at;
    must("cuMemHostGetDevicePointer",
         cu.MemHostGetDevicePointer(&pool.dev, at, 0));
    return ctx;
}

CUstream new_stream(void)
{
    CUstream s = NULL;

    must("cuStreamCreate", cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

CUevent new_event(void)
{
    CUevent e = NULL;

    must("cuEventCreate", cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

struct words new_words(size_t n)
{
    struct words w = {pool.host + pool_used,
                      pool.dev + pool_used * sizeof(uint32_t)};

    pool_used += (n + APART - 1) / APART * APART;
    if (pool_used > POOL_WORDS)
        cannot("a rule needs more words than there are");
    return w;
}

CUdeviceptr new_memory(size_t len)
{
    CUdeviceptr at = 0;

    must("cuMemAlloc", cu.MemAlloc(&at, len));
    return at;
}

struct gate gate_shut(CUstream s)
{
    struct gate gate = {new_words(1)};

    must("cuStreamWaitValue32",
         cu.StreamWaitValue32(s, gate.word.dev, 1, CU_STREAM_WAIT_VALUE_GEQ));
    return gate;
}

void gate_open(struct gate *gate) { *gate->word.host = 1; }

void rest(int ms) { usleep((useconds_t)ms * 1000); }

int becomes(volatile uint32_t *word, uint32_t value, int ms)
{
    double until = gpu_now() + ms * 1e-3;

    do {
        if (*word == value)
            return 1;
        usleep(50);
    } while (gpu_now() < until);
    return *word == value;
}

void goes_on(const char *what, volatile uint32_t *word)
{
    want_true(what, becomes(word, 1, 2000));
}

void stands(const char *what, volatile uint32_t *word)
{
    want_true(what, !becomes(word, 1, 200));
}

struct held hold(CUstream gated, CUstream behind, CUstream beside)
{
    struct held h = {.words = new_words(2)};
    CUdeviceptr word = h.words.dev;

    h.gate = gate_shut(gated);
    GOOD(cu.StreamWriteValue32(behind, word, 1, 0));
    GOOD(cu.StreamWriteValue32(beside, word + 4, 1, 0));
    return h;
}

static void *later_main(void *arg)
{
    struct later *l = arg;

    cu.CtxSetCurrent(l->ctx);
    l->rc = l->call(l->arg);
    atomic_store(&l->done, 1);
    return NULL;
}

void later_start(struct later *l, CUresult (*call)(void *), void *arg)
{
    memset(l, 0, sizeof(*l));
    l->call = call;
    l->arg = arg;
    cu.CtxGetCurrent(&l->ctx);
    if (pthread_create(&l->thread, NULL, later_main, l))
        cannot("no thread could be made");
}

int later_done(struct later *l, int ms)
{
    double until = gpu_now() + ms * 1e-3;

    while (!atomic_load(&l->done) && gpu_now() < until)
        usleep(200);
    return atomic_load(&l->done);
}

CUresult later_join(struct later *l)
{
    pthread_join(l->thread, NULL);
    return l->rc;
}

const char *returns_or_blocks(CUresult (*call)(void *), void *arg,
                              struct gate *gate)
{
    struct later l;
    int done;

    later_start(&l, call, arg);
    done = later_done(&l, 600);
    if (!done)
        gate_open(gate);
    later_join(&l);
    if (l.rc != CUDA_SUCCESS)
        return gpu_code(l.rc);
    return done ? "returns" : "blocks";
}

/* In the child: become what `how` asks for, then the program again. */
static void part_exec(const char *name, const struct part_how *how, int talk)
{
    char fd[16];
    int status, pid;

    snprintf(fd, sizeof(fd), "%d", talk);
    if (how && how->setenv)
        setenv(how->setenv, how->value, 1);
    if (how && how->is_new_pid_namespace) {
        if (unshare(CLONE_NEWPID))
            _exit(99);
        pid = fork();
        if (pid > 0) {
            close(talk);
            waitpid(pid, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
        }
    }
    if (how && how->is_nobody && (setgid(65534) || setuid(65534)))
        _exit(99);
    execl("/proc/self/exe", "driver_rules", "--part", name, fd, (char *)NULL);
    _exit(97);
}

struct part_run part_start(const char *name, const struct part_how *how)
{
    struct part_run run;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        cannot("no socket could be made");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    run.talk = ends[0];
    run.pid = fork();
    if (run.pid == 0)
        part_exec(name, how, ends[1]);
    close(ends[1]);
    return run;
}

int part_end(struct part_run *run)
{
    int status = -1;

    waitpid(run->pid, &status, 0);
    close(run->talk);
    return status;
}

/* The other end has gone: to a part that is the rule's end, to a rule it is news. */
static _Noreturn void talk_ended(void)
{
    if (rules_is_part)
        _exit(0);
    report_line('W', 0, "a part of the rule", "goes on", "has gone");
    end_early();
}

void tell(int talk, const void *at, size_t len)
{
    if (gpu_tell(talk, at, len))
        talk_ended();
}

void hear(int talk, void *at, size_t len)
{
    if (gpu_hear(talk, at, len))
        talk_ended();
}

void tell_word(int talk, int word) { tell(talk, &word, sizeof(word)); }

int hear_word(int talk)
{
    int word;

    hear(talk, &word, sizeof(word));
    return word;
}
