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
    int error;          /* MPI's code, once it is done */
    atomic_int is_done; /* its handle is complete, and r->coll is gone */
    struct request *next, **at; /* among those that run */
};

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
