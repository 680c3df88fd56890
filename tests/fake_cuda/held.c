/* SPDX-License-Identifier: BSD-3-Clause */
/* held.c - what graphs hold for the user: DA, cuUserObjectCreate and following. */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>

struct user_object {
    struct object object;
    CUhostFn destroy;
    void *arg;
    unsigned n_held;
};

/* DA cuUserObjectCreate: the destructor is called by an internal thread, and may call
 * nothing of CUDA. */
static void *destroy(void *arg)
{
    struct user_object *o = arg;

    fake_is_in_host_function = 1;
    o->destroy(o->arg);
    return NULL;
}

void held_let_go(struct user_object *o, unsigned n)
{
    pthread_attr_t attr;
    pthread_t thread;

    o->n_held -= n;
    if (o->n_held)
        return;
    o->object.is_alive = 0;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, destroy, o))
        abort();
    pthread_attr_destroy(&attr);
}

void held_add(struct graph *g, struct user_object *o, unsigned n)
{
    struct held_object *h = calloc(1, sizeof(*h));

    h->object = o;
    h->n = n;
    h->next = g->held;
    g->held = h;
}

void held_more(struct user_object *o, unsigned n) { o->n_held += n; }

CUresult cuUserObjectCreate(CUuserObject *out, void *arg, CUhostFn destructor,
                            unsigned n, unsigned flags)
{
    struct user_object *o;
    CUresult rc = fake_enter("cuUserObjectCreate", 0, NULL);

    if (rc)
        return rc;
    if (!out || !destructor || !n || n > INT32_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    o = object_new(USER_OBJECT, sizeof(*o));
    o->destroy = destructor;
    o->arg = arg;
    o->n_held = n;
    *out = (CUuserObject)o;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned n)
{
    struct user_object *o;
    CUresult rc = fake_enter("cuUserObjectRelease", 0, NULL);

    if (rc)
        return rc;
    o = object_of(handle, USER_OBJECT, "cuUserObjectRelease");
    if (!n || n > o->n_held)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    held_let_go(o, n);
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuGraphRetainUserObject: MOVE takes over what the caller held. */
CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object,
                                 unsigned n, unsigned flags)
{
    struct user_object *o;
    struct graph *g;
    CUresult rc = fake_enter("cuGraphRetainUserObject", 0, NULL);

    if (rc)
        return rc;
    g = object_of(handle, GRAPH, "cuGraphRetainUserObject");
    o = object_of(object, USER_OBJECT, "cuGraphRetainUserObject");
    if (!n || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
        o->n_held += n;
    held_add(g, o, n);
    return fake_leave(CUDA_SUCCESS);
}
