/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.h - what travels while a connection is proved; for listener.c, connector.c. */
#ifndef COLL_LIB_NET_HANDSHAKE_H
#define COLL_LIB_NET_HANDSHAKE_H

#include "lib/net/listener.h"

#define HELLO_MAGIC "COLLv001"

/* In a hello's kind: what follows the proof is sealed (COLL_NET_ENCRYPT). */
#define HELLO_IS_SEALED 0x100u

enum challenge_answer {
    ANSWER_PROVE,
    ANSWER_UNKNOWN,
    ANSWER_EARLY,
    ANSWER_OTHERWISE /* sealed or not, as the hello was not */
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

/* Put a hello in the form that travels, with a nonce of its own. */
void coll__handshake_hello(const unsigned char secret[COLL__SECRET_BYTES],
                           const struct coll__hello *in,
                           struct coll__hello *out);

/* Does this process seal what it sends? */
int coll__handshake_seals(void);

/* Make the connection's own secret, which both sides know then. */
void coll__handshake_session(const unsigned char secret[COLL__SECRET_BYTES],
                             const struct coll__hello *hello,
                             const unsigned char nonce[COLL__NONCE_BYTES],
                             unsigned char session[COLL__SECRET_BYTES]);

/* What the listener's answer to a hello says. */
enum handshake {
    KNOCK_IN,        /* it has proved the secret; send the proof in return */
    KNOCK_UNKNOWN,   /* it knows no such group */
    KNOCK_OTHERWISE, /* it seals and we do not, or the other way round */
    KNOCK_EARLY,     /* the group's rendezvous has not begun yet: try again */
    KNOCK_FALSE      /* it could not prove the secret */
};

/* Judge the answer; sets *proof for KNOCK_IN. */
enum handshake
coll__handshake_judge(const unsigned char secret[COLL__SECRET_BYTES],
                      const struct coll__hello *hello,
                      const struct challenge *challenge, struct proof *proof);

#endif
