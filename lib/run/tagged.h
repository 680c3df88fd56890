/* SPDX-License-Identifier: BSD-3-Clause */
/* tagged.h - requests of messages with tags: lib/tags carries them. */
#ifndef COLL_LIB_RUN_TAGGED_H
#define COLL_LIB_RUN_TAGGED_H

#include "lib/run/request.h"

struct coll__tagged_request; /* tagged.c; begins with a struct coll_request */
struct coll__tags;

/* Carry out a blocking call; within a group, note it for the end of the group. */
int coll__tagged_call(struct coll_comm *comm, const struct coll_args *args);

/* Check the arguments.  COLL_OK, or a status, logged. */
int coll__tagged_check(const struct coll_args *args,
                       const struct coll_comm *comm);

/* Check args, then make a request for them, or take one that was put back.  put() keeps
 * it for the next call.  As owner. */
int coll__tagged_take(struct coll_comm *comm, const struct coll_args *args,
                      struct coll_request **request);
void coll__tagged_put(struct coll_request *request);

/* Start a request that is not running.  As owner. */
int coll__tagged_start(struct coll_request *request);

/* Go on with all messages.  COLL_OK, or the communicator's failure.  As owner. */
int coll__tagged_move(struct coll_comm *comm, int *moved);

/* Set this thread's last error to why the request ended with COLL_ERR_TRUNCATED. */
void coll__tagged_say(const struct coll_request *request);

/* The communicator leaves: COLL_OK, or COLL_ERR_MISMATCH, logged, if a message came that no
 * receive has taken. */
int coll__tagged_leave(struct coll_comm *comm);

/* The communicator has failed, and its transports are closed. */
void coll__tagged_reset(struct coll_comm *comm);

/* Free what is kept for the next calls; also in a child. */
void coll__tagged_forget(struct coll_comm *comm);

/* The bytes of messages that wait for a receive. */
size_t coll__tagged_bytes(const struct coll_comm *comm);

#endif
