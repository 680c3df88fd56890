/* SPDX-License-Identifier: BSD-3-Clause */
/* hot.c - counts what a thread allocates, locks and asks of the system. */
#include "tests/support/hot.h"

#if HOT_COUNTS
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Thread_local struct hot counts;
static uintptr_t left_out[2]; /* from and to */

struct hot hot_now(void) { return counts; }

static int find(struct dl_phdr_info *info, size_t len, void *part)
{
    (void)len;
    if (!strstr(info->dlpi_name, part))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *head = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + head->p_vaddr;

        if (head->p_type == PT_LOAD && (head->p_flags & PF_X)) {
            left_out[0] = at;
            left_out[1] = at + head->p_memsz;
        }
    }
    return 1;
}

void hot_leave_out(const char *part) { dl_iterate_phdr(find, (void *)part); }

static int counts_for(const void *caller)
{
    return (uintptr_t)caller - left_out[0] >= left_out[1] - left_out[0];
}

#define COUNT(what) (counts.what += counts_for(__builtin_return_address(0)))

/* ---- memory ------------------------------------------------------------------- */

void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *ptr, size_t len);
void __libc_free(void *ptr);

void *malloc(size_t len)
{
    COUNT(allocations);
    return __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
    COUNT(allocations);
    return __libc_calloc(n, len);
}

void *realloc(void *ptr, size_t len)
{
    COUNT(allocations);
    return __libc_realloc(ptr, len);
}

void free(void *ptr)
{
    if (ptr)
        COUNT(allocations);
    __libc_free(ptr);
}

/* ---- mutexes and system calls --------------------------------------------------- */

/* glibc's function of that name, found once.  Whoever comes at the same time finds the
 * same. */
#define LIBC(name)                                                             \
    ({                                                                         \
        static __typeof__(&name) volatile found;                               \
        if (!found)                                                            \
            found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                \
        found;                                                                 \
    })

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    COUNT(locks);
    return LIBC(pthread_mutex_lock)(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    COUNT(locks);
    return LIBC(pthread_mutex_trylock)(mutex);
}

long syscall(long number, ...)
{
    long at[6];
    va_list args;

    COUNT(system_calls);
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        at[i] = va_arg(args, long);
    va_end(args);
    return LIBC(syscall)(number, at[0], at[1], at[2], at[3], at[4], at[5]);
}

int sched_yield(void)
{
    COUNT(system_calls);
    return LIBC(sched_yield)();
}

int nanosleep(const struct timespec *nap, struct timespec *left)
{
    COUNT(system_calls);
    return LIBC(nanosleep)(nap, left);
}

int usleep(useconds_t us)
{
    COUNT(system_calls);
    return LIBC(usleep)(us);
}

int poll(struct pollfd *of, nfds_t n, int timeout)
{
    COUNT(system_calls);
    return LIBC(poll)(of, n, timeout);
}

ssize_t read(int fd, void *to, size_t len)
{
    COUNT(system_calls);
    return LIBC(read)(fd, to, len);
}

ssize_t write(int fd, const void *from, size_t len)
{
    COUNT(system_calls);
    return LIBC(write)(fd, from, len);
}
#else
void hot_leave_out(const char *part) { (void)part; }
struct hot hot_now(void) { return (struct hot){0}; }
#endif
