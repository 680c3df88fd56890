/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h - encrypted and authenticated messages between the processes of a launcher, and
 * between a rank and its launcher.
 *
 * A message (a "word") is a line of text.  Each end draws a nonce and sends it in plain
 * bytes.  The connection's keys, one for each direction, are derived from both nonces and
 * from a secret that both ends know.  A word opens only in the order and direction in
 * which it was sealed.  collrun contains this file, too.
 *
 * Threads:   one at a time for one connection.
 */
#ifndef COLL_LIB_NET_WORDS_H
#define COLL_LIB_NET_WORDS_H

#include "lib/net/auth.h"

#define COLL__WORD 352 /* bytes, with the 0 at its end */
#define COLL__WORD_SEALED (COLL__WORD + COLL__SEAL_BYTES)

struct coll__words {
    int fd; /* connected and non-blocking; -1: none */
    struct coll__seal put, take;
    size_t n_held; /* of a word that is still coming */
    unsigned char held[COLL__WORD_SEALED];
};

/* Begin when both ends have drawn and know each other's nonce.  words->fd stays;
 * is_server: it was accepted here. */
void coll__words_init(struct coll__words *words, int is_server,
                      const unsigned char secret[COLL__SECRET_BYTES],
                      const unsigned char mine[COLL__NONCE_BYTES],
                      const unsigned char theirs[COLL__NONCE_BYTES]);

/* Read until held[0] to held[len - 1] are there: 1; 0 not yet; -1 the other end is gone.
 * For the plain bytes with which both ends begin, before there is a key. */
int coll__words_fill(struct coll__words *words, size_t len);

/* Send a word: 0, or -1 if the other end is gone. */
int coll__words_put(struct coll__words *words, const char *word);

/* Receive the next word: 1; 0 not yet; -1 the other end is gone or does not know the
 * secret. */
int coll__words_take(struct coll__words *words, char word[COLL__WORD]);

void coll__words_close(struct coll__words *words);

#endif
