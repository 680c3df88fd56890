/* SPDX-License-Identifier: BSD-3-Clause */
/* user_op.c - operations of MPI_Op_create().
 *
 * The program's function gets the type that the call was made with, so there is one
 * operation of libcoll for each pair of operation and type.
 */
#include "bindings/mpi/preload.h"

#include <stdlib.h>
#include <string.h>

#define STAGE 4096 /* bytes of a right operand that are copied at a time */

struct form {
    struct user_op *op;
    MPI_Datatype type;
    size_t size;
    enum coll_op by;
    struct form *next;
};

struct user_op {
    MPI_User_function *fn;
    int commutes;
    struct form *forms;
};

static struct map ops = MAP_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all forms */

/* MPI's function computes inout = in op inout.  If the result belongs where the left
 * operand is, the right one is copied, a piece at a time. */
static void apply(const void *left, const void *right, void *out, size_t count,
                  enum coll_type type, void *arg)
{
    const struct form *form = arg;
    MPI_Datatype handle = form->type;
    size_t at = 0, most = out == right ? (size_t)1 << 30 : STAGE / form->size;
    char stage[STAGE] __attribute__((aligned(16)));

    (void)type;
    while (at < count) {
        size_t n = count - at < most ? count - at : most;
        size_t from = at * form->size, bytes = n * form->size;
        char *in = (char *)(uintptr_t)left + from, *inout = (char *)out + from;
        int len = (int)n;

        if (out != right)
            inout = memcpy(stage, (const char *)right + from, bytes);
        form->op->fn(in, inout, &len, &handle);
        if (out != right)
            memcpy((char *)out + from, stage, bytes);
        at += n;
    }
}

static struct form *form_add(struct user_op *op, const struct type_info *type)
{
    struct form *form = malloc(sizeof(*form));

    if (!form)
        return NULL;
    *form = (struct form){op, type->handle, type->size, 0, op->forms};
    if (coll_op_create_user(apply, form, op->commutes, &form->by)) {
        free(form);
        return NULL;
    }
    op->forms = form;
    return form;
}

int user_op_find(MPI_Op handle, const struct type_info *type, enum coll_op *by)
{
    struct user_op *op = map_get(&ops, (uintptr_t)handle);
    struct form *form;

    if (!op)
        return 0;
    pthread_mutex_lock(&lock);
    for (form = op->forms; form && form->type != type->handle;)
        form = form->next;
    if (!form)
        form = form_add(op, type);
    pthread_mutex_unlock(&lock);
    if (form)
        *by = form->by;
    return form != NULL;
}

MPI_PRELOAD_API int MPI_Op_create(MPI_User_function *fn, int commutes,
                                  MPI_Op *handle)
{
    struct user_op *op;
    int rc = PMPI_Op_create(fn, commutes, handle);

    if (rc)
        return rc;
    op = malloc(sizeof(*op));
    if (op)
        *op = (struct user_op){fn, commutes != 0, NULL};
    if (!op || map_put(&ops, (uintptr_t)*handle, op)) {
        free(op);
        return PMPI_Op_free(handle) ? MPI_ERR_INTERN : MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

MPI_PRELOAD_API int MPI_Op_free(MPI_Op *handle)
{
    struct user_op *op = handle ? map_take(&ops, (uintptr_t)*handle) : NULL;

    while (op && op->forms) {
        struct form *form = op->forms;

        op->forms = form->next;
        coll_op_destroy(form->by);
        free(form);
    }
    free(op);
    return PMPI_Op_free(handle);
}
