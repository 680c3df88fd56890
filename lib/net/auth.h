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

/* hex: write bytes[len] as hexadecimal text[2 * len + 1].  unhex: read len bytes back;
 * returns 0, or -1 if the text is not hexadecimal. */
void coll__auth_hex(const void *bytes, size_t len, char *text);
int coll__auth_unhex(const char *text, void *bytes, size_t len);

/* HMAC-SHA-512-256 over role and then bytes[len], keyed by the secret.
 *
 * Shapes:    role is a short constant; different uses of one secret have different
 *            roles.
 */
void coll__auth_mac(const unsigned char secret[COLL__SECRET_BYTES],
                    const char *role, const void *bytes, size_t len,
                    unsigned char mac[COLL__MAC_BYTES]);

/* Make the name of the group that shares this secret; the name is not secret. */
void coll__auth_group(const unsigned char secret[COLL__SECRET_BYTES],
                      unsigned char group[COLL__GROUP_BYTES]);

/* Are two proofs equal?  Takes constant time. */
int coll__auth_equal(const unsigned char a[COLL__MAC_BYTES],
                     const unsigned char b[COLL__MAC_BYTES]);

/* One direction of an encrypted and authenticated connection.  The receiver opens the
 * records in the order in which the sender sealed them.  A record that was left out,
 * repeated, changed or forged does not open.  The key changes every
 * COLL__SEAL_PER_KEY records, and no nonce is used twice.
 *
 * Source: ChaCha20-Poly1305 as RFC 8439 has it, by libsodium; the nonce is the
 *         record's number.
 */
struct coll__seal {
    unsigned char key[COLL__SECRET_BYTES];
    uint64_t n; /* records so far */
};

#define COLL__SEAL_BYTES 16                  /* bytes that sealing adds */
#define COLL__SEAL_RECORD ((size_t)64 << 10) /* most bytes of a record */
#define COLL__SEAL_PER_KEY 65536u

/* Return how many bytes `len` bytes take once they are sealed in records. */
static inline size_t coll__sealed_len(size_t len)
{
    return len + COLL__SEAL_BYTES *
                     ((len + COLL__SEAL_RECORD - 1) / COLL__SEAL_RECORD);
}

/* Begin a direction, given the connection's session secret and the direction's name,
 * which both ends know. */
void coll__seal_init(struct coll__seal *seal,
                     const unsigned char session[COLL__SECRET_BYTES],
                     const char *direction);

/* Seal len bytes, up to COLL__SEAL_RECORD, into out[len + COLL__SEAL_BYTES]. */
void coll__seal_put(struct coll__seal *seal, void *out, const void *in,
                    size_t len);

/* Open a record, in[len + COLL__SEAL_BYTES], into out[len], which may be `in`.  Returns
 * 0; or -1 if the record is not the next one that was sealed: then out is unchanged. */
int coll__seal_take(struct coll__seal *seal, void *out, const void *in,
                    size_t len);

/* Overwrite a secret that is no longer needed. */
void coll__auth_wipe(void *secret, size_t len);

#endif
