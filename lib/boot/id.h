/* SPDX-License-Identifier: BSD-3-Clause */
/* id.h - what unique ids (id.c) and handles (handle.c) hold: where to meet, and a secret. */
#ifndef COLL_LIB_BOOT_ID_H
#define COLL_LIB_BOOT_ID_H

#include "lib/net/auth.h"
#include "lib/net/net.h"

/* No padding. */
struct coll__id {
    char magic[8];
    uint8_t n_addrs, unused[7];
    struct coll__addr addrs[COLL__MAX_ADDRS];
    unsigned char secret[COLL__SECRET_BYTES];
};

_Static_assert(sizeof(struct coll__id) <= COLL_UNIQUE_ID_BYTES, "id too long");

/* Read the caller's bytes.  Is it one with that magic? */
int coll__id_read(const void *bytes, const char *magic, struct coll__id *id);

#endif
