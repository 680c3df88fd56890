/* SPDX-License-Identifier: BSD-3-Clause */
/* knock.h - what travels while a connection is proved; for door.c, knock.c. */
#ifndef COLL_LIB_BOOT_KNOCK_H
#define COLL_LIB_BOOT_KNOCK_H

#include "lib/boot/door.h"

#define HELLO_MAGIC "COLLv001"

enum challenge_answer { ANSWER_PROVE, ANSWER_UNKNOWN, ANSWER_EARLY };

struct challenge {
    uint32_t answer; /* little-endian */
    unsigned char nonce[COLL__NONCE_BYTES];
    unsigned char mac[COLL__MAC_BYTES];
};

struct proof {
    unsigned char mac[COLL__MAC_BYTES];
};

/* Compute the proof that `role` ("listener", "connector") gives. */
void coll__door_mac(const unsigned char secret[COLL__SECRET_BYTES],
                    const char *role, const struct coll__hello *hello,
                    const unsigned char nonce[COLL__NONCE_BYTES],
                    unsigned char mac[COLL__MAC_BYTES]);

#endif
