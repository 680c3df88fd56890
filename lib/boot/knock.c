/* SPDX-License-Identifier: BSD-3-Clause */
/* knock.c - the connecting side of the proof, in the caller's thread. */
#include "lib/boot/knock.h"
#include "lib/util/util.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

void coll__door_mac(const unsigned char secret[COLL__SECRET_BYTES],
                    const char *role, const struct coll__hello *hello,
                    const unsigned char nonce[COLL__NONCE_BYTES],
                    unsigned char mac[COLL__MAC_BYTES])
{
    unsigned char bytes[sizeof(*hello) + COLL__NONCE_BYTES];

    memcpy(bytes, hello, sizeof(*hello));
    memcpy(bytes + sizeof(*hello), nonce, COLL__NONCE_BYTES);
    coll__auth_mac(secret, role, bytes, sizeof(bytes), mac);
}

/* Put the hello in the form that travels. */
static void prepare(const unsigned char secret[COLL__SECRET_BYTES],
                    const struct coll__hello *in, struct coll__hello *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->magic, HELLO_MAGIC, sizeof(out->magic));
    coll__auth_group(secret, out->group);
    coll__auth_random(out->nonce, sizeof(out->nonce));
    out->kind = htole32(in->kind);
    out->from = htole32(in->from);
    out->to = htole32(in->to);
    out->size = htole32(in->size);
    out->generation = htole32(in->generation);
    out->pid = htole32((uint32_t)getpid());
}

static enum coll__knock ended(int status)
{
    return status == COLL_ERR_TIMEOUT ? KNOCK_SILENT : KNOCK_LOST;
}

enum coll__knock
coll__door_knock(int fd, const unsigned char secret[COLL__SECRET_BYTES],
                 struct coll__hello *hello, double deadline)
{
    unsigned char mac[COLL__MAC_BYTES];
    struct challenge challenge;
    struct coll__hello wire;
    struct proof proof;
    int status;

    prepare(secret, hello, &wire);
    status = coll__net_write(fd, &wire, sizeof(wire), deadline);
    if (!status)
        status = coll__net_read(fd, &challenge, sizeof(challenge), deadline);
    if (status)
        return ended(status);
    if (le32toh(challenge.answer) == ANSWER_EARLY)
        return KNOCK_EARLY;
    if (le32toh(challenge.answer) != ANSWER_PROVE)
        return KNOCK_UNKNOWN;
    coll__door_mac(secret, "listener", &wire, challenge.nonce, mac);
    if (!coll__auth_equal(mac, challenge.mac))
        return KNOCK_FALSE;
    coll__door_mac(secret, "connector", &wire, challenge.nonce, proof.mac);
    status = coll__net_write(fd, &proof, sizeof(proof), deadline);
    return status ? ended(status) : KNOCK_IN;
}
