/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_link.h - words between the collruns of two hosts, which nobody else can
 * read or make.
 *
 * A word is a line of text.  Both ends know the job's key; of it and of what each
 * end has drawn comes the key of this connection, and a word opens only in the
 * order and direction in which it was sealed.
 *
 * Source: libsodium's crypto_generichash (BLAKE2b, RFC 7693) and crypto_secretbox
 *         (XSalsa20-Poly1305); a word's number is its nonce.
 */
#ifndef COLL_TOOLS_COLLRUN_LINK_H
#define COLL_TOOLS_COLLRUN_LINK_H

#include <stddef.h>
#include <stdint.h>

#define LINK_KEY 32
#define LINK_NONCE 32
#define LINK_WORD 160   /* bytes, with the 0 at its end */
#define LINK_SEALED 176 /* the same on its way */

struct link {
    int fd;        /* connected, does not block; -1: there is none */
    int is_server; /* it was accepted here */
    unsigned char key[LINK_KEY];
    uint64_t n_put, n_taken;
    size_t n_held; /* of a word that is still coming */
    unsigned char held[LINK_SEALED];
};

/* Make the job's key of the run's name and of COLL_JOB_SECRET or what
 * COLL_JOB_SECRET_FILE holds.
 *
 * Result:    1: there is such a secret, 0: there is none; -1: it cannot be read, and
 *            why has been said.
 */
int link_key(const char *run_id, unsigned char key[LINK_KEY]);

/* Draw what this end adds to the connection's key. */
void link_draw(unsigned char nonce[LINK_NONCE]);

/* Begin with a socket, which becomes the link's. */
void link_init(struct link *link, int fd, int is_server,
               const unsigned char key[LINK_KEY],
               const unsigned char server[LINK_NONCE],
               const unsigned char client[LINK_NONCE]);

/* Read until held[0] to held[len - 1] are there: 1, 0 not yet, -1 the other end is
 * gone.  Both ends begin so, before there is a key. */
int link_fill(struct link *link, size_t len);

/* Send a word: 0, or -1 when the other end is gone. */
int link_put(struct link *link, const char *word);

/* Take the next word: 1, 0 not yet, -1 the other end is gone, or does not know the
 * job's key. */
int link_take(struct link *link, char word[LINK_WORD]);

/* Wait for it until `deadline` (s, of CLOCK_MONOTONIC); 1 or -1. */
int link_await(struct link *link, double deadline, char word[LINK_WORD]);

void link_close(struct link *link);

#endif
