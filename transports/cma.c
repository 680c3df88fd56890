/* SPDX-License-Identifier: BSD-3-Clause */
/* cma.c - reading from other processes by process_vm_readv().
 *
 * The kernel checks a reader as it checks a debugger that attaches.  Under Yama's ptrace
 * scope 1 a process may be read only by its ancestors, and by the one process that it has
 * declared and the descendants of that process. libcoll declares nothing: it cannot know
 * which process the program has declared, and declaring "any" would open the process to
 * all of the user's programs. collrun declares itself for the ranks that it starts.
 */
#include "transports/cma.h"
#include "lib/trace/log.h"
#include "lib/device/process.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kernel moves a little less than 2 GiB a call. */
#define MAX_CALL ((size_t)1 << 30)

/* The secret, and the process that made it.  The lock guards both while they are made;
 * other processes get the secret's address only afterwards. */
static struct {
    struct coll__lock lock;
    int32_t pid;
    unsigned char secret[CMA_SECRET_BYTES];
} own = {.lock = COLL__LOCK(NULL)};

static ssize_t read_by(int id, void *dst, uint64_t remote, size_t len)
{
    struct iovec to = {dst, len}, from = {(void *)(uintptr_t)remote, len};
    ssize_t n;

    do
        n = process_vm_readv(id, &to, 1, &from, 1, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

#define THREADS_TRIED 3 /* of which each may end just then */

/* As read(), from another process. */
static ssize_t read_some(int pid, void *dst, uint64_t remote, size_t len)
{
    ssize_t n = read_by(pid, dst, remote, len);

    for (int i = 0; n < 0 && errno == ESRCH && i < THREADS_TRIED; i++) {
        int thread = coll__other_thread(pid);

        if (!thread)
            break;
        n = read_by(thread, dst, remote, len);
    }
    return n;
}

/* Read this process's own memory: 0, or errno. */
static int try_own(void)
{
    static const unsigned char mark = 'x';
    unsigned char got = 0;
    ssize_t n = read_some(getpid(), &got, (uintptr_t)&mark, 1);

    return n == 1 && got == mark ? 0 : n < 0 ? errno : EIO;
}

int coll__cma_usable(char *why, size_t len)
{
    int err;

    if (!strcmp(coll__param_text(PARAM_CMA), "off")) {
        snprintf(why, len, "COLL_CMA is off; set it to auto to allow it");
        return COLL_ERR_UNSUPPORTED;
    }
    err = try_own();
    if (err == EPERM || err == EACCES)
        snprintf(why, len,
                 "process_vm_readv: %s, even of this process's own "
                 "memory: a seccomp filter forbids it; start the container "
                 "with --cap-add SYS_PTRACE or another seccomp profile",
                 strerror(err));
    else if (err)
        snprintf(why, len,
                 "process_vm_readv: %s; a kernel with "
                 "CONFIG_CROSS_MEMORY_ATTACH is needed",
                 strerror(err));
    return err ? COLL_ERR_UNSUPPORTED : COLL_OK;
}

int coll__cma_offer(struct coll__cma_token *mine)
{
    char why[CMA_WHY_BYTES];
    int32_t pid = (int32_t)getpid();
    int rc = coll__cma_usable(why, sizeof(why));

    memset(mine, 0, sizeof(*mine));
    if (rc)
        return rc;
    coll__lock(&own.lock);
    if (own.pid != pid && getrandom(own.secret, sizeof(own.secret), 0) ==
                              (ssize_t)sizeof(own.secret))
        own.pid = pid;
    if (own.pid == pid) {
        mine->addr = (uintptr_t)own.secret;
        mine->pid = pid;
        memcpy(mine->secret, own.secret, sizeof(mine->secret));
    }
    coll__unlock(&own.lock);
    return mine->pid ? COLL_OK : COLL_ERR_UNSUPPORTED;
}

/* ---- why a peer cannot be read ------------------------------------------ */

/* Yama's ptrace scope, 0 where there is none. */
static int ptrace_scope(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%d", &scope) != 1)
        scope = 0;
    fclose(file);
    return scope;
}

/* The kernel returns only EPERM; name the likely reason. */
static void explain_refusal(int pid, char *why, size_t len)
{
    int scope = ptrace_scope();

    if (scope == 1)
        snprintf(why, len,
                 "the kernel lets process %d be read by its "
                 "ancestors only (kernel.yama.ptrace_scope is 1); start the "
                 "ranks with collrun, or set that to 0",
                 pid);
    else if (scope > 1)
        snprintf(why, len,
                 "the kernel lets only processes with "
                 "CAP_SYS_PTRACE read others (kernel.yama.ptrace_scope is "
                 "%d); set that to 0",
                 scope);
    else
        snprintf(why, len,
                 "process %d may not be read: it belongs to another "
                 "user or user namespace, or is not dumpable "
                 "(PR_SET_DUMPABLE); run all ranks as one user in one "
                 "container",
                 pid);
}

static void explain(int err, int pid, char *why, size_t len)
{
    switch (err) {
    case EPERM:
    case EACCES:
        explain_refusal(pid, why, len);
        break;
    case ESRCH:
        snprintf(why, len,
                 "there is no process %d here: that rank has ended, "
                 "or lives in another pid namespace; run all ranks of the host "
                 "in one container, or share its pid namespace",
                 pid);
        break;
    default: /* EFAULT, or bytes that are not the secret */
        snprintf(why, len,
                 "process %d is not that rank: it lives in another "
                 "pid namespace; run all ranks of the host in one container, "
                 "or share its pid namespace",
                 pid);
    }
}

int coll__cma_probe_why(const struct coll__cma_token *theirs, char *why,
                        size_t len)
{
    unsigned char got[CMA_SECRET_BYTES] = {0};
    int pid = theirs->pid, rc = coll__cma_usable(why, len);
    ssize_t n;

    if (rc)
        return rc;
    if (pid <= 0) {
        snprintf(why, len,
                 "that rank does not offer its memory; its own log "
                 "and coll_info --transports there say why");
        return COLL_ERR_UNSUPPORTED;
    }
    n = read_some(pid, got, theirs->addr, sizeof(got));
    if (n == (ssize_t)sizeof(got) && !memcmp(got, theirs->secret, sizeof(got)))
        return COLL_OK;
    explain(n < 0 ? errno : 0, pid, why, len);
    return COLL_ERR_UNSUPPORTED;
}

int coll__cma_probe(const struct coll__cma_token *theirs)
{
    char why[CMA_WHY_BYTES];
    int rc = coll__cma_probe_why(theirs, why, sizeof(why));

    if (rc)
        log_info("cma", "no single copy from process %d: %s", theirs->pid, why);
    return rc;
}

/* ---- reading ------------------------------------------------------------ */

/* Log why a read failed from a process that was readable before. */
static int read_failed(int err, int pid, uint64_t remote, size_t len)
{
    if (err == EFAULT && coll__is_ending(pid)) {
        log_error("cma",
                  "process %d is being killed, and its memory is gone; see why "
                  "that rank ended: maybe the host ran out of memory",
                  pid);
        return COLL_ERR_PEER;
    }
    switch (err) {
    case ESRCH:
        log_error("cma",
                  "process %d ended while %zu bytes of its memory were "
                  "to be read; see why that rank ended",
                  pid, len);
        return COLL_ERR_PEER;
    case EFAULT:
        log_error("cma",
                  "the %zu bytes at 0x%llx of process %d were freed, or are a "
                  "device's memory; keep a buffer until its operation is done, "
                  "or set COLL_CMA=off",
                  len, (unsigned long long)remote, pid);
        return COLL_ERR_SYSTEM;
    case EPERM:
    case EACCES:
        log_error("cma",
                  "process %d no longer lets its memory be read; change "
                  "no user, seccomp filter or PR_SET_DUMPABLE after the "
                  "communicator is made, or set COLL_CMA=off",
                  pid);
        return COLL_ERR_SYSTEM;
    case ENOMEM:
        log_error("cma",
                  "the kernel has no memory to read process %d; free "
                  "some, or set COLL_CMA=off",
                  pid);
        return COLL_ERR_NOMEM;
    default:
        log_error("cma",
                  "cannot read %zu bytes of process %d: %s; set "
                  "COLL_CMA=off",
                  len, pid, strerror(err));
        return COLL_ERR_SYSTEM;
    }
}

int coll__cma_read(int pid, void *dst, const void *remote, size_t len)
{
    unsigned char *to = dst;
    uint64_t from = (uintptr_t)remote;

    while (len) {
        ssize_t n = read_some(pid, to, from, min_size(len, MAX_CALL));

        if (n <= 0) /* 0 is not documented, but must not make an endless loop */
            return read_failed(n ? errno : EFAULT, pid, from, len);
        to += n;
        from += (size_t)n;
        len -= (size_t)n;
    }
    return COLL_OK;
}
