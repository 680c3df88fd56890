/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_msg.h - messages between rank 0 and a rank at the rendezvous. */
#ifndef COLL_LIB_BOOT_RENDEZVOUS_MSG_H
#define COLL_LIB_BOOT_RENDEZVOUS_MSG_H

#include "lib/boot/boot.h"
#include "lib/boot/rendezvous.h"
#include "lib/net/presence.h"
#include "lib/net/this_host.h"

#include <endian.h>

#define TCP_TEXT 512
#define TCP_BLOCK_MAX 256
#define TELL_TIME 0.5 /* s, to send an error to one rank */

enum tcp_type {
    TCP_HERE = 1,  /* to rank 0: the rank's host */
    TCP_WELCOME,   /* to a rank: all ranks are here; struct tcp_welcome */
    TCP_BLOCK,     /* to rank 0: the rank's block */
    TCP_PARENT,    /* to a rank: its parent's block; keep the connection */
    TCP_PARENT_GO, /* the same, and close the connection */
    TCP_AGAIN,     /* to a rank: struct tcp_again */
    TCP_BYE,       /* the end of a connection, in order */
    TCP_ERROR      /* a sentence: the job cannot form */
};

struct tcp_head {
    uint32_t type;  /* little-endian, like all integers that travel */
    uint32_t fault; /* for TCP_ERROR: -status */
    uint64_t len;
};

struct tcp_here {
    unsigned char host[COLL__HOST_BYTES], presence[COLL__PRESENCE_BYTES];
};

struct tcp_welcome {
    unsigned char nonce[COLL__NONCE_BYTES]; /* for this group's own secret */
    uint32_t is_one_host;
};

struct tcp_again { /* close the connection, and come again after this time */
    uint32_t ms;
};

/* A message that is being read. */
struct tcp_words {
    struct tcp_head head;
    unsigned char body[TCP_TEXT];
    size_t n_read;
    int err; /* errno with which the connection has ended, or 0 */
};

static inline enum tcp_type tcp_type(const struct tcp_words *words)
{
    return (enum tcp_type)le32toh(words->head.type);
}

static inline size_t tcp_len(const struct tcp_words *words)
{
    return (size_t)le64toh(words->head.len);
}

/* Send a message; COLL_ERR_PEER, COLL_ERR_TIMEOUT, not logged. */
int coll__rendezvous_put(int fd, enum tcp_type type, const void *bytes,
                         size_t len, double deadline);

/* Send an error: its status and its sentence. */
void coll__rendezvous_put_error(int fd, int status, const char *text);

/* Continue to read, without waiting: 1 if the message is complete, 0 if more must come,
 * -1 if the other end has gone or has sent an invalid message. */
int coll__rendezvous_read(int fd, struct tcp_words *words);

/* Write the error of a rank whose connection has ended; where: the rank's address. */
void coll__rendezvous_lost(int rank, const char *where,
                           const struct tcp_words *words, char text[TCP_TEXT]);

/* Why the ranks of a group that was to grow do not wait for the others. */
#define COLL__ORIGIN_FAILED "the communicator that was to grow has failed: %s"

/* Return the status of an error message; its sentence is words->body. */
int coll__rendezvous_fault(const struct tcp_words *words);

/* Return how many ranks may wait at rank 0 at a time. */
int coll__rendezvous_n_seats(const struct coll__rendezvous_spec *spec);

/* Are there too few descriptors for rank 0 and the least number of seats?  Logged. */
int coll__rendezvous_lacks_seats(const struct coll__rendezvous_spec *spec);

/* Rank 0: listen at the rendezvous address; a status, logged.  If a name has several
 * (localhost: IPv4 and IPv6), take the first that this host has. */
int coll__rendezvous_listen(const struct coll__rendezvous_spec *spec);

/* Rank 0's side and the other ranks' side of the rendezvous. */
struct rendezvous_root;
struct rendezvous_join;
int coll__rendezvous_root_open(struct coll__boot *boot,
                               const struct coll__rendezvous_spec *spec);
int coll__rendezvous_root_places(struct coll__boot *boot, const void *in,
                                 size_t len);
void coll__rendezvous_root_tell(struct coll__boot *boot, int status,
                                const char *text);
void coll__rendezvous_root_close(struct coll__boot *boot);

int coll__rendezvous_join_open(struct coll__boot *boot,
                               const struct coll__rendezvous_spec *spec);
int coll__rendezvous_join_places(struct coll__boot *boot, const void *in,
                                 size_t len, void *parent);
/* Does this process lack descriptors to join?  Logged. */
int coll__rendezvous_join_lacks(const struct coll__rendezvous_spec *spec);

/* Tell rank 0 that this rank lacks something to join; works without the reactor. */
void coll__rendezvous_join_excuse(const struct coll__rendezvous_spec *spec,
                                  int status);
void coll__rendezvous_join_tell(struct coll__boot *boot, int status,
                                const char *text);
void coll__rendezvous_join_close(struct coll__boot *boot);

#endif
