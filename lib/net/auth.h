/* SPDX-License-Identifier: BSD-3-Clause */
/* auth.h - secrets and proofs, by libsodium.
 *
 * Every function may be called from any thread.
 */
#ifndef COLL_LIB_NET_AUTH_H
#define COLL_LIB_NET_AUTH_H

#include <stddef.h>

#define COLL__SECRET_BYTES 32
#define COLL__NONCE_BYTES 32
#define COLL__MAC_BYTES 32
#define COLL__GROUP_BYTES 16

/* Fill out[len] with random bytes. */
void coll__auth_random(void *out, size_t len);

/* Make a secret of a text of any length. */
void coll__auth_from_text(const char *text,
                          unsigned char secret[COLL__SECRET_BYTES]);

/* HMAC-SHA-512-256 over role and then bytes[len], keyed by the secret.
 *
 * Shapes:    role is a short constant that keeps the uses of one secret apart.
 */
void coll__auth_mac(const unsigned char secret[COLL__SECRET_BYTES],
                    const char *role, const void *bytes, size_t len,
                    unsigned char mac[COLL__MAC_BYTES]);

/* Make the name, no secret itself, of the group that shares this secret. */
void coll__auth_group(const unsigned char secret[COLL__SECRET_BYTES],
                      unsigned char group[COLL__GROUP_BYTES]);

/* Say whether two proofs are equal, in constant time. */
int coll__auth_equal(const unsigned char a[COLL__MAC_BYTES],
                     const unsigned char b[COLL__MAC_BYTES]);

/* Overwrite a secret that is no longer needed. */
void coll__auth_wipe(void *secret, size_t len);

#endif
