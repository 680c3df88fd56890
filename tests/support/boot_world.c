/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_world.c - see boot_world.h. */
#include "tests/support/boot_world.h"
#include "tests/support/files.h"
#include "lib/boot/boot.h"
#include "tests/support/patience.h"
#include "lib/util/util.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>
#include <unistd.h>

static int (*thread_fn)(struct world_rank *);

static void *run_thread(void *arg)
{
    struct world_rank *w = arg;

    w->result = thread_fn(w);
    return NULL;
}

static void make_id(struct coll_unique_id *id)
{
    setenv("COLL_NET_INTERFACE", "lo", 1); /* loopback and nothing else */
    ck_assert_int_eq(coll_get_unique_id(id), COLL_OK);
}

int world_threads(int size, int (*fn)(struct world_rank *), void *arg)
{
    struct world_rank ranks[WORLD_MAX];
    pthread_t threads[WORLD_MAX];
    struct coll_unique_id id;
    int n_bad = 0;

    make_id(&id);
    thread_fn = fn;
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct world_rank){r, size, id, arg, -1};
        ck_assert_int_eq(
            pthread_create(&threads[r], NULL, run_thread, &ranks[r]), 0);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(threads[r], NULL);
        n_bad += ranks[r].result != 0;
    }
    return n_bad;
}

void world_start(int size, int (*fn)(struct world_rank *), void *arg,
                 pid_t pids[WORLD_MAX])
{
    struct coll_unique_id id;
    pid_t parent = getpid();

    make_id(&id);
    for (int r = 0; r < size; r++) {
        struct world_rank w = {r, size, id, arg, -1};

        pids[r] = fork();
        ck_assert_int_ge(pids[r], 0);
        if (pids[r])
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(99);
        alarm((unsigned)patient(60));
        exit(fn(&w) ? 1 : 0);
    }
}

int world_wait(int size, const pid_t pids[WORLD_MAX])
{
    int n_bad = 0;

    for (int r = 0; r < size; r++) {
        int how = -1;

        ck_assert_int_eq(waitpid(pids[r], &how, 0), pids[r]);
        n_bad += how != 0;
    }
    return n_bad;
}

int world_forks(int size, int (*fn)(struct world_rank *), void *arg)
{
    pid_t pids[WORLD_MAX];

    world_start(size, fn, arg, pids);
    return world_wait(size, pids);
}

void *world_shared(size_t len)
{
    void *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(map, MAP_FAILED);
    return map;
}

int world_n_fds(void) { return folder_count("/proc/self/fd"); }

int world_n_threads(void) { return folder_count("/proc/self/task"); }

int world_settled_threads(int n_threads)
{
    for (int i = 0; i < 1000 && world_n_threads() > n_threads; i++)
        usleep(1000);
    return world_n_threads();
}

int world_open(struct world_rank *w, const struct coll__ctrl_events *events,
               double timeout, struct coll__ctrl **ctrl)
{
    struct coll__boot boot = {.timeout = timeout};
    int status = coll__boot_open_id(&boot, &w->id, w->size, w->rank);

    if (status)
        return status;
    status = coll__ctrl_open(&boot, events, ctrl);
    coll__boot_close(&boot);
    return status;
}

int world_listen(struct coll__addr *addr)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];
    int fd;

    ck_assert_int_eq(coll__net_listen(REACH_HOST, &fd), COLL_OK);
    ck_assert_int_eq(coll__net_own_addrs(fd, addrs), 1);
    ck_assert(coll__net_is_loopback(&addrs[0]));
    ck_assert_int_eq(coll__net_reach(fd), REACH_HOST);
    *addr = addrs[0];
    return fd;
}

/* ---- events and exchanges ----------------------------------------------- */

static void on_failed(void *arg, int status, const char *text)
{
    struct world_notice *notice = arg;

    notice->status = status;
    snprintf(notice->text, sizeof(notice->text), "%s", text);
    atomic_fetch_add_explicit(&notice->n_calls, 1, memory_order_release);
}

int world_n_calls(struct world_notice *notice)
{
    return atomic_load_explicit(&notice->n_calls, memory_order_acquire);
}

static enum coll__verdict on_call(void *arg, const struct coll__ctrl_call *call,
                                  int is_gathering, char text[COLL__TEXT_MAX])
{
    (void)arg;
    (void)is_gathering;
    snprintf(text, COLL__TEXT_MAX, "in none");
    return call->sig.seq <= 42 ? VERDICT_HERE : VERDICT_LATE;
}

struct coll__ctrl_events world_events(struct world_notice *notice)
{
    return (struct coll__ctrl_events){on_failed, on_call, notice};
}

void world_nap(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

void world_gather(int n)
{
    static atomic_int n_here;

    atomic_fetch_add(&n_here, 1);
    while (atomic_load(&n_here) < n)
        world_nap(0.001);
}

int world_await(struct world_notice *notice, double timeout)
{
    double end = coll__now() + timeout;

    while (!world_n_calls(notice) && coll__now() < end)
        world_nap(0.001);
    return world_n_calls(notice);
}

static void fill(unsigned char *block, size_t len, int rank, int round)
{
    for (size_t i = 0; i < len; i++)
        block[i] = (unsigned char)(rank * 31 + round * 7 + (int)i);
}

int world_exchange(struct coll__ctrl *ctrl, int rank, int size, size_t len,
                   int round)
{
    unsigned char *in = malloc(len + 1), *want = malloc(len + 1);
    unsigned char *out = malloc(len * (size_t)size + 1);
    int bad = 0;

    fill(in, len, rank, round);
    if (coll__ctrl_allgather(ctrl, in, len, out, patient(20)))
        bad = 1;
    for (int r = 0; r < size && !bad; r++) {
        fill(want, len, r, round);
        bad = memcmp(out + len * (size_t)r, want, len) != 0;
    }
    free(in);
    free(want);
    free(out);
    return bad;
}
