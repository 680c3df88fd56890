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
    if (sodium_init() < 0) { /* no source of random numbers: no way on */
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

void coll__auth_wipe(void *secret, size_t len) { sodium_memzero(secret, len); }
