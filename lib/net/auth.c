/* SPDX-License-Identifier: BSD-3-Clause */
/* auth.c - secrets and proofs; the only file that knows libsodium. */
#include "lib/net/auth.h"

#include <sodium.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
    if (sodium_init() < 0) { /* libsodium cannot work without random numbers */
        fputs("coll boot: libsodium found no random numbers; is /dev/urandom "
              "there?\n",
              stderr);
        abort();
    }
}

void coll__auth_random(void *out, size_t len)
{
    pthread_once(&once, start);
    randombytes_buf(out, len);
}

void coll__auth_from_text(const char *text,
                          unsigned char secret[COLL__SECRET_BYTES])
{
    pthread_once(&once, start);
    crypto_generichash(secret, COLL__SECRET_BYTES, (const unsigned char *)text,
                       strlen(text), NULL, 0);
}

void coll__auth_hex(const void *bytes, size_t len, char *text)
{
    sodium_bin2hex(text, 2 * len + 1, bytes, len);
}

int coll__auth_unhex(const char *text, void *bytes, size_t len)
{
    const char *end;
    size_t n;

    return sodium_hex2bin(bytes, len, text, strlen(text), NULL, &n, &end) ||
                   n != len || *end
               ? -1
               : 0;
}

void coll__auth_mac(const unsigned char secret[COLL__SECRET_BYTES],
                    const char *role, const void *bytes, size_t len,
                    unsigned char mac[COLL__MAC_BYTES])
{
    crypto_auth_hmacsha512256_state state;

    pthread_once(&once, start);
    crypto_auth_hmacsha512256_init(&state, secret, COLL__SECRET_BYTES);
    crypto_auth_hmacsha512256_update(&state, (const unsigned char *)role,
                                     strlen(role) + 1);
    crypto_auth_hmacsha512256_update(&state, bytes, len);
    crypto_auth_hmacsha512256_final(&state, mac);
}

void coll__auth_group(const unsigned char secret[COLL__SECRET_BYTES],
                      unsigned char group[COLL__GROUP_BYTES])
{
    unsigned char mac[COLL__MAC_BYTES];

    coll__auth_mac(secret, "group", "", 0, mac);
    memcpy(group, mac, COLL__GROUP_BYTES);
}

int coll__auth_equal(const unsigned char a[COLL__MAC_BYTES],
                     const unsigned char b[COLL__MAC_BYTES])
{
    return !sodium_memcmp(a, b, COLL__MAC_BYTES);
}

/* ---- sealing ------------------------------------------------------------- */

void coll__seal_init(struct coll__seal *seal,
                     const unsigned char session[COLL__SECRET_BYTES],
                     const char *direction)
{
    coll__auth_mac(session, direction, NULL, 0, seal->key);
    seal->n = 0;
}

/* Make the next record's nonce; change the key every COLL__SEAL_PER_KEY records. */
static void
next(struct coll__seal *seal,
     unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES])
{
    if (seal->n && seal->n % COLL__SEAL_PER_KEY == 0)
        coll__auth_mac(seal->key, "next key", NULL, 0, seal->key);
    memset(nonce, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    for (int i = 0; i < 8; i++)
        nonce[4 + i] = (unsigned char)(seal->n >> 8 * i);
    seal->n++;
}

void coll__seal_put(struct coll__seal *seal, void *out, const void *in,
                    size_t len)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

    next(seal, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, in, len, NULL, 0, NULL,
                                              nonce, seal->key);
}

int coll__seal_take(struct coll__seal *seal, void *out, const void *in,
                    size_t len)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

    next(seal, nonce);
    return crypto_aead_chacha20poly1305_ietf_decrypt(
        out, NULL, NULL, in, len + COLL__SEAL_BYTES, NULL, 0, nonce, seal->key);
}

void coll__auth_wipe(void *secret, size_t len) { sodium_memzero(secret, len); }
