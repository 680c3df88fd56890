/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.h - the messages that prove a connection; for listener.c, connector.c. */
#ifndef COLL_LIB_NET_HANDSHAKE_H
#define COLL_LIB_NET_HANDSHAKE_H

#include "lib/net/listener.h"

#define HELLO_MAGIC "COLLv001"

/* A flag in a hello's kind: all bytes after the proof are sealed (COLL_NET_ENCRYPT). */
#define HELLO_IS_SEALED 0x100u

enum challenge_answer {
    ANSWER_PROVE,
    ANSWER_UNKNOWN,
    ANSWER_EARLY,
    ANSWER_OTHERWISE /* the listener's COLL_NET_ENCRYPT differs from the hello's */
};

struct challenge {
    uint32_t answer; /* little-endian */
    unsigned char nonce[COLL__NONCE_BYTES];
    unsigned char mac[COLL__MAC_BYTES];
};

struct proof {
    unsigned char mac[COLL__MAC_BYTES];
};

/* Compute the proof that `role` ("listener", "connector") gives. */
void coll__listener_mac(const unsigned char secret[COLL__SECRET_BYTES],
                        const char *role, const struct coll__hello *hello,
                        const unsigned char nonce[COLL__NONCE_BYTES],
                        unsigned char mac[COLL__MAC_BYTES]);

/* Fill in a hello as it travels, with a fresh nonce. */
void coll__handshake_hello(const unsigned char secret[COLL__SECRET_BYTES],
                           const struct coll__hello *in,
                           struct coll__hello *out);

/* Does this process seal what it sends? */
int coll__handshake_seals(void);

/* Compute the connection's session secret; both sides get the same. */
void coll__handshake_session(const unsigned char secret[COLL__SECRET_BYTES],
                             const struct coll__hello *hello,
                             const unsigned char nonce[COLL__NONCE_BYTES],
                             unsigned char session[COLL__SECRET_BYTES]);

/* The meaning of the listener's answer to a hello. */
enum handshake {
    HELLO_IN,        /* it has proved the secret; answer with our proof */
    HELLO_UNKNOWN,   /* the listener does not know the group */
    HELLO_OTHERWISE, /* only one of the two sides seals */
    HELLO_EARLY,     /* the group's rendezvous has not begun yet: try again */
    HELLO_FALSE      /* the listener could not prove the secret */
};

/* Check the answer; sets *proof for HELLO_IN. */
enum handshake
coll__handshake_judge(const unsigned char secret[COLL__SECRET_BYTES],
                      const struct coll__hello *hello,
                      const struct challenge *challenge, struct proof *proof);

#endif
