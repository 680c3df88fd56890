/* SPDX-License-Identifier: BSD-3-Clause */
/* handshake.c - the proof of the secret: what both sides compute. */
#include "lib/net/handshake.h"
#include "lib/util/param.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

void coll__listener_mac(const unsigned char secret[COLL__SECRET_BYTES],
                        const char *role, const struct coll__hello *hello,
                        const unsigned char nonce[COLL__NONCE_BYTES],
                        unsigned char mac[COLL__MAC_BYTES])
{
    unsigned char bytes[sizeof(*hello) + COLL__NONCE_BYTES];

    memcpy(bytes, hello, sizeof(*hello));
    memcpy(bytes + sizeof(*hello), nonce, COLL__NONCE_BYTES);
    coll__auth_mac(secret, role, bytes, sizeof(bytes), mac);
}

int coll__handshake_seals(void)
{
    return !strcmp(coll__param_text(PARAM_NET_ENCRYPT), "1");
}

void coll__handshake_session(const unsigned char secret[COLL__SECRET_BYTES],
                             const struct coll__hello *hello,
                             const unsigned char nonce[COLL__NONCE_BYTES],
                             unsigned char session[COLL__SECRET_BYTES])
{
    coll__listener_mac(secret, "session", hello, nonce, session);
}

void coll__handshake_hello(const unsigned char secret[COLL__SECRET_BYTES],
                           const struct coll__hello *in,
                           struct coll__hello *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->magic, HELLO_MAGIC, sizeof(out->magic));
    coll__auth_group(secret, out->group);
    coll__auth_random(out->nonce, sizeof(out->nonce));
    out->kind =
        htole32(in->kind | (coll__handshake_seals() ? HELLO_IS_SEALED : 0));
    out->from = htole32(in->from);
    out->to = htole32(in->to);
    out->size = htole32(in->size);
    out->generation = htole32(in->generation);
    out->pid = htole32((uint32_t)getpid());
}

enum handshake
coll__handshake_judge(const unsigned char secret[COLL__SECRET_BYTES],
                      const struct coll__hello *hello,
                      const struct challenge *challenge, struct proof *proof)
{
    unsigned char mac[COLL__MAC_BYTES];

    if (le32toh(challenge->answer) == ANSWER_EARLY)
        return HELLO_EARLY;
    if (le32toh(challenge->answer) == ANSWER_OTHERWISE)
        return HELLO_OTHERWISE;
    if (le32toh(challenge->answer) != ANSWER_PROVE)
        return HELLO_UNKNOWN;
    coll__listener_mac(secret, "listener", hello, challenge->nonce, mac);
    if (!coll__auth_equal(mac, challenge->mac))
        return HELLO_FALSE;
    coll__listener_mac(secret, "connector", hello, challenge->nonce,
                       proof->mac);
    return HELLO_IN;
}
