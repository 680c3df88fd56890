/* SPDX-License-Identifier: BSD-3-Clause */
/* auth.h - secrets and proofs, by libsodium.
 *
 * Every function may be called from any thread.
 */
#ifndef COLL_LIB_NET_AUTH_H
#define COLL_LIB_NET_AUTH_H

#include <stddef.h>
#include <stdint.h>

#define COLL__SECRET_BYTES 32
#define COLL__NONCE_BYTES 32
#define COLL__MAC_BYTES 32
#define COLL__GROUP_BYTES 16

/* Fill out[len] with random bytes. */
void coll__auth_random(void *out, size_t len);

/* Make a secret of a text of any length. */
void coll__auth_from_text(const char *text,
                          unsigned char secret[COLL__SECRET_BYTES]);

/* Write bytes[len] as text[2 * len + 1]; read exactly so many back: 0, or -1. */
void coll__auth_hex(const void *bytes, size_t len, char *text);
int coll__auth_unhex(const char *text, void *bytes, size_t len);

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

/* One direction of a connection whose bytes nobody else is to read or change:
 * records that are sealed here are opened there in the same order.  A record that was
 * left out, repeated, changed or comes from elsewhere does not open.  The key is
 * changed every COLL__SEAL_PER_KEY records, and no number is used twice.
 *
 * Source: ChaCha20-Poly1305 as RFC 8439 has it, by libsodium; the nonce is the
 *         record's number.
 */
struct coll__seal {
    unsigned char key[COLL__SECRET_BYTES];
    uint64_t n; /* records so far */
};

#define COLL__SEAL_BYTES 16                  /* by which a record grows */
#define COLL__SEAL_RECORD ((size_t)64 << 10) /* bytes of the longest one */
#define COLL__SEAL_PER_KEY 65536u

/* Return how long `len` bytes are in records. */
static inline size_t coll__sealed_len(size_t len)
{
    return len + COLL__SEAL_BYTES *
                     ((len + COLL__SEAL_RECORD - 1) / COLL__SEAL_RECORD);
}

/* Begin; both ends know the connection's own secret, and the direction's name. */
void coll__seal_init(struct coll__seal *seal,
                     const unsigned char session[COLL__SECRET_BYTES],
                     const char *direction);

/* Seal len bytes, up to COLL__SEAL_RECORD, into out[len + COLL__SEAL_BYTES]. */
void coll__seal_put(struct coll__seal *seal, void *out, const void *in,
                    size_t len);

/* Open a record, in[len + COLL__SEAL_BYTES], into out[len], which may be `in`: 0; or
 * -1, and nothing was written: it is not what was sealed. */
int coll__seal_take(struct coll__seal *seal, void *out, const void *in,
                    size_t len);

/* Overwrite a secret that is no longer needed. */
void coll__auth_wipe(void *secret, size_t len);

#endif
