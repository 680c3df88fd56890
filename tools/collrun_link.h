/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_link.h - encrypted and authenticated messages between the collruns of two
 * hosts.
 *
 * A message (a "word") is a line of text.  Both ends know the job's key.  The key of a
 * connection is derived from it and from a nonce of each end.  A word opens only in the
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
    int fd;        /* connected and non-blocking; -1: none */
    int is_server; /* it was accepted here */
    unsigned char key[LINK_KEY];
    uint64_t n_put, n_taken;
    size_t n_held; /* of a word that is still coming */
    unsigned char held[LINK_SEALED];
};

/* Derive the job's key from the run's name and from the secret in COLL_JOB_SECRET or in
 * the file COLL_JOB_SECRET_FILE.
 *
 * Result:    1: there is a secret; 0: there is none; -1: it cannot be read, which was
 *            reported.
 */
int link_key(const char *run_id, unsigned char key[LINK_KEY]);

/* Draw this end's nonce for the connection's key. */
void link_draw(unsigned char nonce[LINK_NONCE]);

/* Begin when both ends have drawn and know each other's nonce.  link->fd stays; key: the
 * job's. */
void link_init(struct link *link, int is_server,
               const unsigned char key[LINK_KEY],
               const unsigned char mine[LINK_NONCE],
               const unsigned char theirs[LINK_NONCE]);

/* Read until held[0] to held[len - 1] are there: 1; 0 not yet; -1 the other end is gone.
 * For the plain bytes with which both ends begin, before there is a key. */
int link_fill(struct link *link, size_t len);

/* Send a word: 0, or -1 if the other end is gone. */
int link_put(struct link *link, const char *word);

/* Receive the next word: 1; 0 not yet; -1 the other end is gone or does not know the
 * job's key. */
int link_take(struct link *link, char word[LINK_WORD]);

/* Wait for the next word until `deadline` (s, of CLOCK_MONOTONIC); 1 or -1. */
int link_await(struct link *link, double deadline, char word[LINK_WORD]);

void link_close(struct link *link);

#endif
