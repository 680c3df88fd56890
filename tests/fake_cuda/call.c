/* SPDX-License-Identifier: BSD-3-Clause */
/* call.c - how each call begins and ends: the lock, and what every entry answers
 * before it looks at its own arguments. */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_waiting;
static atomic_int is_inited, is_forked;
static atomic_int error; /* a CUresult */

/* Of tests/jitter/jitter.c, where it is loaded; and the linker says where this library is. */
void jitter_leave_out(const void *from, const void *to) __attribute__((weak));
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char etext __attribute__((visibility("hidden")));

/* A device does not come late because the host is busy. */
__attribute__((constructor)) static void be_on_time(void)
{
    if (jitter_leave_out)
        jitter_leave_out(&__ehdr_start, &etext);
}

__thread int fake_is_in_host_function;
int fake_n_copies;

long fake_setting(const char *name, long value)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 0) : value;
}

double fake_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

CUresult fake_error(void) { return (CUresult)atomic_load(&error); }

/* DA, CUDA_ERROR_ILLEGAL_ADDRESS and others: "any further CUDA work will return the
 * same error". */
void fake_fail(CUresult rc)
{
    int none = 0;

    atomic_compare_exchange_strong(&error, &none, (int)rc);
}

void fake_wait(void)
{
    n_waiting++;
    pthread_cond_wait(&changed, &lock);
    n_waiting--;
}

void fake_changed(void)
{
    if (n_waiting)
        pthread_cond_broadcast(&changed);
}

void fake_nap(void)
{
    pthread_mutex_unlock(&lock);
    usleep(100);
    pthread_mutex_lock(&lock);
}

static void forked(void) { atomic_store(&is_forked, 1); }

int fake_is_inited(void) { return atomic_load(&is_inited); }

/* A process in another pid namespace than its /proc has no driver (H100,
 * ipc/pid_namespace). */
static int is_in_its_proc(void)
{
    char name[32] = "";

    return readlink("/proc/self", name, sizeof(name) - 1) < 0 ||
           atol(name) == (long)getpid();
}

/* DA cuInit: flags must be 0, no device is NO_DEVICE; a child forked after it has no
 * driver (H100, init/fork_after_init). */
CUresult fake_init(void)
{
    CUresult rc = CUDA_SUCCESS;

    if (atomic_load(&is_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&is_inited)) {
        rc = is_in_its_proc() ? device_init() : CUDA_ERROR_OPERATING_SYSTEM;
        if (rc == CUDA_SUCCESS) {
            pthread_atfork(NULL, NULL, forked);
            atomic_store(&is_inited, 1);
        }
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* The order of the answers: DA, "Initialization"; then what was asked for by
 * FAKE_CUDA_FAULT; then the error that stays (DA, CUresult). */
static CUresult may_enter(const char *entry, unsigned need)
{
    CUresult rc;

    if (atomic_load(&is_forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!(need & NO_INIT) && !atomic_load(&is_inited))
        return CUDA_ERROR_NOT_INITIALIZED;
    /* DA cuLaunchHostFunc: "The host function must not make any CUDA API calls". */
    if (fake_is_in_host_function && !(need & NO_INIT))
        return CUDA_ERROR_NOT_PERMITTED;
    rc = fault_of(entry);
    if (rc) {
        pthread_mutex_lock(&lock); /* whoever waits may be lost now */
        queue_kick();
        fake_changed();
        pthread_mutex_unlock(&lock);
        return rc;
    }
    return need & IN_ERROR ? CUDA_SUCCESS : fake_error();
}

CUresult fake_enter(const char *entry, unsigned need, struct context **ctx)
{
    CUresult rc;

    counts_add_call(entry);
    rc = may_enter(entry, need);

    if (rc)
        return rc;
    pthread_mutex_lock(&lock);
    if (!(need & IN_ERROR))
        rc = fake_error(); /* found while this call waited for the lock */
    while (!rc && need & ALONE && fake_n_copies)
        fake_wait();
    if (!rc && need & NEED_CONTEXT) {
        struct context *now = context_current(&rc);

        if (ctx)
            *ctx = now;
    }
    if (!rc && need & UNSAFE)
        rc = capture_allows();
    if (rc)
        pthread_mutex_unlock(&lock);
    return rc;
}

CUresult fake_enter_stream(const char *entry, unsigned need, CUstream handle,
                           struct stream **s)
{
    CUresult rc = fake_enter(entry, need, NULL);

    if (rc)
        return rc;
    rc = stream_of(handle, entry, s);
    if (rc)
        pthread_mutex_unlock(&lock);
    return rc;
}

CUresult fake_leave(CUresult rc)
{
    pthread_mutex_unlock(&lock);
    return rc;
}

pthread_mutex_t *fake_lock(void) { return &lock; }
