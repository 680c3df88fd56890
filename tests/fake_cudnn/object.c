/* SPDX-License-Identifier: BSD-3-Clause */
/* object.c - handles and descriptors, by kind. */
#include "tests/fake_cudnn/object.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    struct object *next;
    enum kind kind;
    int is_alive;
    _Alignas(max_align_t) unsigned char body[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;

void *object_new(enum kind kind, size_t size)
{
    struct object *o = calloc(1, sizeof(*o) + size);

    o->kind = kind;
    o->is_alive = 1;
    pthread_mutex_lock(&lock);
    o->next = objects;
    objects = o;
    pthread_mutex_unlock(&lock);
    return o->body;
}

static struct object *find(const void *handle, enum kind kind,
                           const char *entry)
{
    static const char *const names[] = {
        [DNN_HANDLE] = "cuDNN handle",
        [TENSOR] = "tensor descriptor",
        [FILTER] = "filter descriptor",
        [CONVOLUTION] = "convolution descriptor",
        [LT_HANDLE] = "cuBLASLt handle",
        [MATMUL] = "description of a matrix product",
        [LAYOUT] = "matrix layout",
        [PREFERENCE] = "preference of a matrix product"};
    struct object *o;

    pthread_mutex_lock(&lock);
    for (o = objects; o; o = o->next)
        if (o->body == handle && o->kind == kind && o->is_alive)
            break;
    pthread_mutex_unlock(&lock);
    if (o)
        return o;
    fprintf(stderr, "fake_cudnn: %s: %p is no %s, or one that was destroyed\n",
            entry, handle, names[kind]);
    abort();
}

void *object_of(const void *handle, enum kind kind, const char *entry)
{
    return handle ? find(handle, kind, entry)->body : NULL;
}

void object_end(const void *handle, enum kind kind, const char *entry)
{
    struct object *o = find(handle, kind, entry);

    pthread_mutex_lock(&lock);
    o->is_alive = 0;
    pthread_mutex_unlock(&lock);
}
