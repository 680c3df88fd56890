/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - declarations of the transports; code that wants all of them uses
 * coll__transports (transport.h). */
#ifndef COLL_TRANSPORTS_LIST_H
#define COLL_TRANSPORTS_LIST_H

#include "transports/transport.h"

extern const struct coll__transport coll__transport_self;
extern const struct coll__transport coll__transport_shm;
extern const struct coll__transport coll__transport_tcp;
extern const struct coll__transport coll__transport_ucx;

#endif
