/* SPDX-License-Identifier: BSD-3-Clause */
/* creation.c - communicators that are made while their caller does something else: by a
 * thread of its own for each. */
#include "include/coll/coll.h"
#include "lib/run/args.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/spawn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct coll_creation {
    struct coll_create_args
        args; /* its pointers are to what follows, or NULL */
    struct coll_unique_id id;
    struct coll_config config;
    void *context; /* the caller's current GPU; NULL: none */
    unsigned generation;
    pthread_t thread;
    /* COLL_IN_PROGRESS until the thread stores the end, with release, after comm and
     * why. */
    atomic_int status;
    struct coll_comm *comm;
    char why[COLL__TEXT_MAX];
    struct coll_handle handles[]; /* [args.nranks] or none */
};

static int make(struct coll_creation *c)
{
    const struct coll_create_args *args = &c->args;

    if (args->handles)
        return coll_comm_create_handles(&c->comm, args->nranks, args->handles,
                                        args->rank, args->uuid, args->config);
    if (args->id)
        return coll_comm_create(&c->comm, args->nranks, args->id, args->rank,
                                args->config);
    return coll_comm_create_env(&c->comm, args->config);
}

static void *run(void *arg)
{
    struct coll_creation *c = arg;
    int status = c->context ? coll__stream_calls->enter(c->context) : COLL_OK;

    if (!status)
        status = make(c);
    snprintf(c->why, sizeof(c->why), "%s", status ? coll_last_error() : "");
    atomic_store_explicit(&c->status, status, memory_order_release);
    return NULL;
}

/* What can be told at once. */
static int judge(const struct coll_create_args *args)
{
    if (args->id && args->handles) {
        log_error("api", "coll_comm_create_start: id or handles, not both");
        return COLL_ERR_INVALID;
    }
    return args->id || args->handles
               ? coll__place_check("coll_comm_create_start", args->nranks,
                                   args->rank)
               : COLL_OK;
}

/* Keep what args points to; NULL: no memory, logged. */
static struct coll_creation *keep(const struct coll_create_args *args)
{
    size_t n = args->handles ? (size_t)args->nranks : 0;
    struct coll_creation *c = calloc(1, sizeof(*c) + n * sizeof(c->handles[0]));

    if (!c) {
        log_error("api", "no memory for a communicator of %d ranks",
                  args->nranks);
        return NULL;
    }
    c->args = *args;
    if (args->id) {
        c->id = *args->id;
        c->args.id = &c->id;
    }
    if (args->handles) {
        memcpy(c->handles, args->handles, n * sizeof(c->handles[0]));
        c->args.handles = c->handles;
    }
    return c;
}

static int start(const struct coll_create_args *theirs,
                 struct coll_creation **creation)
{
    struct coll_create_args args;
    struct coll_creation *c;
    int rc;

    if (!theirs || !creation) {
        log_error("api", "coll_comm_create_start: %s is NULL",
                  theirs ? "creation" : "args");
        return COLL_ERR_INVALID;
    }
    rc = coll__struct_take(theirs, &args, sizeof(args), "create_args");
    if (rc == COLL_OK)
        rc = judge(&args);
    if (rc)
        return rc;
    c = keep(&args);
    if (!c)
        return COLL_ERR_NOMEM;
    if (args.config)
        rc = coll__struct_take(args.config, &c->config, sizeof(c->config),
                               "config");
    c->config.size = sizeof(c->config);
    c->args.config = &c->config;
    c->context = coll__stream_calls ? coll__stream_calls->context() : NULL;
    c->generation = coll__generation_now();
    atomic_init(&c->status, COLL_IN_PROGRESS);
    if (rc == COLL_OK && coll__spawn(&c->thread, run, c, "coll-create")) {
        log_error("api", "cannot start a thread that makes a communicator; see "
                         "ulimit -u");
        rc = COLL_ERR_SYSTEM;
    }
    if (rc)
        free(c);
    else
        *creation = c;
    return rc;
}

int coll_comm_create_start(const struct coll_create_args *args,
                           struct coll_creation **creation)
{
    return coll__log_done(start(args, creation));
}

static int test(struct coll_creation *c, struct coll_comm **comm)
{
    int status;

    if (!c || !comm || coll__is_inherited(c->generation)) {
        log_error("api", "coll_comm_create_test: %s",
                  !c      ? "creation is NULL"
                  : !comm ? "comm is NULL"
                          : "the creation is the parent's, not this "
                            "process's");
        return COLL_ERR_INVALID;
    }
    status = atomic_load_explicit(&c->status, memory_order_acquire);
    if (status == COLL_IN_PROGRESS)
        return status;
    pthread_join(c->thread, NULL);
    if (status == COLL_OK)
        *comm = c->comm;
    else
        coll__log_set_error(c->why);
    free(c);
    return status;
}

int coll_comm_create_test(struct coll_creation *creation,
                          struct coll_comm **comm)
{
    return coll__log_done(test(creation, comm));
}
