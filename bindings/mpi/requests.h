/* SPDX-License-Identifier: BSD-3-Clause */
/* requests.h - carried calls that do not block: what requests.c and waits.c share. */
#ifndef COLL_BINDINGS_MPI_REQUESTS_H
#define COLL_BINDINGS_MPI_REQUESTS_H

#include "bindings/mpi/preload.h"

struct request {
    struct call call;
    struct coll_request *coll;
    MPI_Request handle;
    int has_handle;
    int is_persistent;
    int tag;            /* of a persistent request: persistent.c */
    int error;          /* MPI's code, once it is done */
    atomic_int is_done; /* its handle is complete, and r->coll is gone */
    struct request *next, **at; /* among those that run */
};

/* A request for the call, or NULL; the call's stages are freed then. */
struct request *request_new(struct call *call);

/* Prepare it: a status.  Then start it, any number of times: MPI's error code. */
int request_prepare(struct request *r);
int request_launch(struct request *r);

/* Know a request by its handle, find it, and forget and free it. */
int request_name(struct request *r, MPI_Request handle);
struct request *request_find(MPI_Request handle);
void request_forget(struct request *r);

/* The call of a persistent request has ended. */
void persistent_ended(struct request *r);

/* Between these, no other thread starts or looks at requests. */
void requests_enter(void);
void requests_leave(void);

/* A wait of this library: it yields its core, and sleeps late. */
struct pause {
    unsigned n;
};
void pause_more(struct pause *pause);

/* Look at all carried calls that run, and complete those that have ended. */
void requests_look(void);

/* Wait until the request has ended, if it is of a carried call. */
void request_settle(MPI_Request handle);

#endif
