/* SPDX-License-Identifier: BSD-3-Clause */
/* handles.c - what handles of one process give to another: a file descriptor.
 *
 * A process that has made a handle answers at an abstract socket of its own name; so
 * a handle opens for any user of the machine, and for nobody when its process has
 * gone (H100, ipc/other_user and dead_owner) or lives in another pid namespace (UCX
 * PR 11513).
 */
#include "tests/fake_cuda/fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAGIC = 0x46616b65 };

struct question {
    uint32_t kind;
    uint64_t id;
};

static uint64_t cookie;
static int listener = -1;

static socklen_t name_of(const struct shared_handle *h,
                         struct sockaddr_un *name)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
             "fake_cuda-%u-%016llx", h->pid, (unsigned long long)h->cookie);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       strlen(name->sun_path + 1));
}

static uint64_t pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

/* ---- a descriptor through a socket --------------------------------------- */

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

static void hand_out(int to, int fd)
{
    union control control = {.room = {0}};
    char is_there = fd >= 0;
    struct iovec one = {.iov_base = &is_there, .iov_len = 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};

    if (is_there) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
    }
    sendmsg(to, &message, MSG_NOSIGNAL);
}

/* -1: no answer; 0: there is nothing of that name any more. */
static int take(int from, int *fd)
{
    union control control;
    char is_there = 0;
    struct iovec one = {.iov_base = &is_there, .iov_len = 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};

    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    if (!is_there || message.msg_controllen < sizeof(control.head))
        return 0;
    memcpy(fd, CMSG_DATA(&control.head), sizeof(int));
    return 1;
}

/* ---- the owner ----------------------------------------------------------- */

static int find(const struct question *q)
{
    int fd;

    pthread_mutex_lock(fake_lock());
    fd =
        q->kind == HANDLE_EVENT ? event_by_id(q->id) : memory_descriptor(q->id);
    fd = fd >= 0 ? dup(fd) : -1;
    pthread_mutex_unlock(fake_lock());
    return fd;
}

static void *answer(void *arg)
{
    (void)arg;
    for (;;) {
        int talk = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct question q;

        if (talk < 0)
            continue;
        if (recv(talk, &q, sizeof(q), MSG_WAITALL) == sizeof(q)) {
            int fd = find(&q);

            hand_out(talk, fd);
            if (fd >= 0)
                close(fd);
        }
        close(talk);
    }
    return NULL;
}

static CUresult serve(const struct shared_handle *h)
{
    struct sockaddr_un name;
    socklen_t len = name_of(h, &name);
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&name, len) ||
        listen(listener, 64))
        return CUDA_ERROR_OPERATING_SYSTEM;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create(&thread, &attr, answer, NULL);
    pthread_attr_destroy(&attr);
    return rc ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult handle_open(struct shared_handle *h, enum handle_kind kind)
{
    if (!cookie &&
        getrandom(&cookie, sizeof(cookie), 0) != (ssize_t)sizeof(cookie))
        return CUDA_ERROR_OPERATING_SYSTEM;
    h->magic = MAGIC;
    h->kind = kind;
    h->pid = (uint32_t)getpid();
    h->cookie = cookie;
    h->pid_namespace = pid_namespace();
    return listener < 0 ? serve(h) : CUDA_SUCCESS;
}

/* ---- who asks ------------------------------------------------------------ */

static int ask(const struct shared_handle *h, const struct question *q, int *fd)
{
    struct sockaddr_un name;
    socklen_t len = name_of(h, &name);
    int talk = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = -1;
    struct timeval limit = {.tv_sec = 20};

    /* a child of a dead owner may keep its socket, and answers nothing */
    if (talk >= 0 &&
        !setsockopt(talk, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) &&
        !connect(talk, (struct sockaddr *)&name, len) &&
        send(talk, q, sizeof(*q), MSG_NOSIGNAL) == (ssize_t)sizeof(*q))
        rc = take(talk, fd);
    if (talk >= 0)
        close(talk);
    return rc;
}

/* DA cuIpcOpenMemHandle: not in its own process, INVALID_CONTEXT (H100,
 * ipc/own_process).  The lock is given away while the other process answers: it may
 * be asking us. */
CUresult handle_ask(const struct shared_handle *h, enum handle_kind kind,
                    int *fd)
{
    struct question q = {.kind = kind, .id = h->id};
    int rc;

    if (h->magic != MAGIC || h->kind != kind ||
        h->pid_namespace != pid_namespace())
        return CUDA_ERROR_INVALID_VALUE;
    if (h->pid == (uint32_t)getpid() && h->cookie == cookie)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_unlock(fake_lock());
    rc = ask(h, &q, fd);
    pthread_mutex_lock(fake_lock());
    return rc < 0    ? CUDA_ERROR_INVALID_HANDLE
           : rc == 0 ? CUDA_ERROR_INVALID_VALUE
                     : CUDA_SUCCESS;
}
