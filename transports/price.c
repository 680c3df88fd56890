/* SPDX-License-Identifier: BSD-3-Clause */
/* price.c - prices of links over sockets and over network devices. */
#include "transports/price.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <string.h>

#define CROWD_S 10e-6 /* s, for each other rank of a core */

double coll__price_crowd(const struct coll__tp_env *env)
{
    const struct coll__peer *me = &env->peers[env->rank];
    double crowd =
        me->local_cores ? (double)me->local_size / me->local_cores : 1;

    return crowd > 1 ? CROWD_S * crowd : 0;
}

/* It is copied twice on the way. */
void coll__price_loopback(const struct coll__tp_env *env,
                          struct coll__link *link)
{
    *link = (struct coll__link){.alpha = 5e-6 + coll__price_crowd(env),
                                .beta = 1 / 3e9};
}

void coll__price_device(const struct coll__nic *nic, enum coll__wire wire,
                        const char *device, struct coll__link *link)
{
    struct coll__rate rate = coll__carrier_rate(nic, wire);

    *link = (struct coll__link){.alpha = rate.alpha,
                                .beta = rate.beta,
                                .gap = rate.gap,
                                .share = rate.share,
                                .is_known = rate.is_known};
    if (nic)
        coll__carrier_text(nic, link->via, sizeof(link->via));
    else
        snprintf(link->via, sizeof(link->via), "%s", device);
}

/* Name the link by n devices. */
static void name_all(int n, struct coll__link *link)
{
    char text[sizeof(link->via) + 16] = ""; /* with room for any number */

    snprintf(text, sizeof(text), "%d x %s", n, link->via);
    memcpy(link->via, text, sizeof(link->via) - 1); /* its last stays 0 */
}

void coll__price_rails(int n, struct coll__link *link)
{
    if (n < 2)
        return;
    link->beta /= n;
    link->share /= n;
    name_all(n, link);
}

/* One core makes the copies of all connections. */
void coll__price_ways(int n, struct coll__link *link)
{
    if (n < 2)
        return;
    link->share /= n;
    link->beta =
        max_double(link->share, min_double(link->beta, COLL__TCP_CORE));
    name_all(n, link);
}

static void price_interface(const char *name, struct coll__link *link)
{
    const struct coll__nic *nics;
    int n = coll__carriers(&nics);

    coll__price_device(coll__carrier_named(nics, n, name), WIRE_TCP, name,
                       link);
}

void coll__price_tcp(const struct coll__addr *to, struct coll__link *link)
{
    char name[COLL__INTERFACE_NAME];

    coll__net_interface_to(to, name);
    price_interface(name, link);
}

void coll__price_way_out(struct coll__link *link)
{
    char name[COLL__INTERFACE_NAME];

    coll__carrier_route(name, sizeof(name));
    price_interface(name, link);
}

void coll__price_note(const struct coll__link *link, char *note, size_t len)
{
    coll__print(note, len,
                "to other hosts by %s: a message takes %.3g us and %.3g ns a "
                "byte%s",
                *link->via ? link->via : "a device that is not known",
                link->alpha * 1e6, link->beta * 1e9,
                link->is_known ? "" : ", but a job times two and goes by that");
}
