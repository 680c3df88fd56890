/* SPDX-License-Identifier: BSD-3-Clause */
/* forbid.c - a seccomp filter, written by hand so that no library is needed.
 *
 * It looks at the number of the system call alone and not at the architecture
 * of the caller: a test calls by the one that it was compiled for.
 */
#include "tests/support/forbid.h"
#include "lib/util/util.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define WAITV 449 /* futex_waitv(), of kernel 5.16 */
#ifdef SYS_epoll_wait
#define EPOLL SYS_epoll_wait
#else
#define EPOLL SYS_epoll_pwait /* by which libc does it elsewhere */
#endif
#ifdef SYS_poll
#define POLL SYS_poll
#else
#define POLL SYS_ppoll
#endif

static int forbid(unsigned number)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_LEN(steps), steps};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int forbid_cma(void) { return forbid(SYS_process_vm_readv); }

int forbid_fences(void) { return forbid(SYS_membarrier); }

int forbid_waitv(void) { return forbid(WAITV); }

int forbid_accept(void) { return forbid(SYS_accept4); }

int forbid_epoll(void) { return forbid(EPOLL); }

int forbid_send(void) { return forbid(SYS_sendto); }

int forbid_recv(void) { return forbid(SYS_recvfrom); }

int forbid_poll(void) { return forbid(POLL); }

int forbid_ppoll(void) { return forbid(SYS_ppoll); }
