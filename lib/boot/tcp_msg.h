/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_msg.h - messages between rank 0 and a rank at the rendezvous. */
#ifndef COLL_LIB_BOOT_TCP_MSG_H
#define COLL_LIB_BOOT_TCP_MSG_H

#include "lib/boot/boot.h"

#define TCP_MAX_BYTES ((size_t)64 << 20)
#define TCP_TEXT 512

enum tcp_type {
    TCP_WELCOME = 1, /* all are here; a nonce for this group's own secret */
    TCP_BLOCK,       /* one rank's block */
    TCP_ALL,         /* every rank's block */
    TCP_ERROR        /* a sentence: the job cannot form */
};

/* The state of an open rendezvous: rank 0 has a socket for each other rank
 * (fds[0] is -1), another rank has one, fds[0], to rank 0. */
struct tcp_state {
    int n_fds;
    int fds[];
};

/* Send a message; COLL_ERR_PEER, COLL_ERR_TIMEOUT, not logged. */
int coll__tcp_put(int fd, enum tcp_type type, const void *bytes, size_t len,
                  double deadline);

/* Receive a message of this type and length from `whom` ("rank 3"), or the
 * sentence of an error.
 *
 * Errors:    COLL_ERR_BOOTSTRAP, logged.
 */
int coll__tcp_take(int fd, enum tcp_type type, void *bytes, size_t len,
                   const char *whom, double deadline);

/* Send the sentence to every rank that is connected. */
void coll__tcp_tell_all(const int *fds, int n_fds, const char *text);

/* Rank 0's and the others' part of meeting; *state is theirs to make. */
struct coll__tcp_spec;
int coll__tcp_host(const struct coll__tcp_spec *spec, double deadline,
                   struct tcp_state **state);
int coll__tcp_join(const struct coll__tcp_spec *spec, double deadline,
                   struct tcp_state **state);
void coll__tcp_state_free(struct tcp_state *state);

#endif
