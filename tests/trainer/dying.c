/* SPDX-License-Identifier: BSD-3-Clause */
/* dying.c - linked into a coll_train whose ranks die, or see others die, where a test
 * wants it.
 *
 * DYING_FAULT="die:NAME:N": this process is killed at its N-th call of the function
 * NAME.  "end:NAME:N": it is killed when that call is done.  "fail:NAME:N": that call returns
 * COLL_ERR_PEER when it is done, as on a rank that learns of a death too early.  The
 * linker's --wrap leads the calls here.  "connect" is libc's, which the library calls: a
 * newcomer connects to the launcher, and once it has been let in to rank 0.
 *
 * DYING_REFILL="WANT:FLOOR": once there are only FLOOR ranks, or fewer, rank 0 lets newcomers
 * in, each time it asks: it waits until there are enough of them for WANT ranks.
 */
#include "tests/trainer/apart.h"
#include "coll/coll.h"
#include "trainer/checkpoint.h"
#include "trainer/model.h"
#include "trainer/optim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char kind[8];

/* Return 1 if this call of the function is to fail, or the last one; a call that is to die
 * does not return. */
static int is_due(const char *name)
{
    const char *fault = getenv("DYING_FAULT");
    static char where[32];
    static int left;

    if (!fault)
        return 0;
    if (!*kind &&
        sscanf(fault, "%7[a-z]:%31[a-z_]:%d", kind, where, &left) != 3)
        abort();
    if (strcmp(name, where) || --left)
        return 0;
    if (!strcmp(kind, "die"))
        raise(SIGKILL);
    return 1;
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    is_due("connect");
    return (int)syscall(SYS_connect, fd, addr, len);
}

/* A device's memory is open to the library (apart.h). */
static int is_library(const char *name) { return !strncmp(name, "coll_", 5); }

static int begin(const char *name)
{
    int is_wrong = is_due(name);

    if (is_library(name))
        apart_open();
    return is_wrong;
}

/* The fault of a call that is done, or its status. */
static int end(const char *name, int is_wrong, int status)
{
    if (is_library(name))
        apart_close();
    if (is_wrong && !strcmp(kind, "end"))
        raise(SIGKILL);
    return is_wrong ? COLL_ERR_PEER : status;
}

#define WRAP(name, parameters, ...)                                            \
    int __real_##name parameters;                                              \
    int __wrap_##name parameters;                                              \
    int __wrap_##name parameters                                               \
    {                                                                          \
        int is_wrong = begin(#name);                                           \
                                                                               \
        return end(#name, is_wrong, __real_##name(__VA_ARGS__));               \
    }

WRAP(coll_start, (struct coll_request * request), request)
WRAP(coll_group_end, (void))
WRAP(coll_wait, (struct coll_request * request, double seconds), request,
     seconds)
WRAP(coll_allreduce,
     (const void *in, void *out, size_t count, enum coll_type type,
      enum coll_op op, struct coll_comm *comm, void *stream),
     in, out, count, type, op, comm, stream)
WRAP(coll_allgather,
     (const void *in, void *out, size_t count, enum coll_type type,
      struct coll_comm *comm, void *stream),
     in, out, count, type, comm, stream)
WRAP(coll_broadcast,
     (const void *in, void *out, size_t count, enum coll_type type, int root,
      struct coll_comm *comm, void *stream),
     in, out, count, type, root, comm, stream)
WRAP(coll_gatherv,
     (const void *in, size_t count, void *out, const size_t *counts,
      const size_t *displs, enum coll_type type, int root,
      struct coll_comm *comm, void *stream),
     in, count, out, counts, displs, type, root, comm, stream)
WRAP(coll_scatterv,
     (const void *in, const size_t *counts, const size_t *displs, void *out,
      size_t count, enum coll_type type, int root, struct coll_comm *comm,
      void *stream),
     in, counts, displs, out, count, type, root, comm, stream)
WRAP(coll_comm_shrink,
     (struct coll_comm * comm, const int exclude[], int n_exclude, int flags,
      struct coll_comm **rest),
     comm, exclude, n_exclude, flags, rest)
WRAP(coll_comm_grow,
     (struct coll_comm * comm, int n_new, const struct coll_unique_id *id,
      struct coll_comm **grown),
     comm, n_new, id, grown)
WRAP(coll_comm_dup, (struct coll_comm * comm, struct coll_comm **dup), comm,
     dup)
WRAP(coll_comm_create_env,
     (struct coll_comm * *comm, const struct coll_config *config), comm, config)
WRAP(checkpoint_save,
     (const struct checkpoint *c, const char *dir, size_t keep), c, dir, keep)
WRAP(model_forward, (struct model * m, const struct pass *pass), m, pass)

struct trainer;
WRAP(trainer__replay,
     (struct trainer * t, size_t step,
      int (*put)(struct trainer *t, size_t step)),
     t, step, put)
WRAP(coll_comm_async_error, (struct coll_comm * comm), comm)

void __real_optim_move(struct optim *o, const struct optim_part *part);
void __wrap_optim_move(struct optim *o, const struct optim_part *part);
void __wrap_optim_move(struct optim *o, const struct optim_part *part)
{
    is_due("optim_move");
    __real_optim_move(o, part);
}

int __real_coll_comm_waiting(struct coll_comm *comm, int *n);
int __wrap_coll_comm_waiting(struct coll_comm *comm, int *n);
int __wrap_coll_comm_waiting(struct coll_comm *comm, int *n)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    const char *refill = getenv("DYING_REFILL");
    int size = coll_comm_size(comm), want, floor, st;
    static int has_begun;

    if (!refill)
        return __real_coll_comm_waiting(comm, n);
    if (sscanf(refill, "%d:%d", &want, &floor) != 2)
        abort();
    has_begun |= size <= floor;
    *n = 0;
    if (!has_begun)
        return COLL_OK;
    while (!(st = __real_coll_comm_waiting(comm, n)) && *n + size < want)
        nanosleep(&moment, NULL);
    return st;
}
