/* SPDX-License-Identifier: BSD-3-Clause */
/* feature.c - the features of this build, and the transports that work here. */
#include "include/coll/coll.h"
#include "lib/boot/boot.h"
#include "lib/device/device.h"
#include "lib/price/tune.h"
#include "lib/topo/inside.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "lib/util/param.h"
#include "lib/util/text.h"
#include "lib/util/util.h"
#include "transports/cma.h"
#include "transports/price.h"
#include "transports/ucx_price.h"
#include "transports/transport.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Features that a later version or another build may have, but this one lacks. */
static const struct coll_feature missing[] = {
#if !COLL_HAVE_CUDA
    {"Devices", "cuda",
     "not built; install nvidia-cuda-dev (CUDA 12.0 or later) and configure "
     "--with-cuda",
     0},
#endif
#if !COLL_HAVE_PMIX
    {"Bootstraps", "pmix",
     "not built; install libpmix-dev and configure --with-pmix", 0},
#endif
    {NULL, NULL, NULL, 0},
};

static char ucx_text[512]; /* the version at build time, and the loaded one */

static const struct coll_feature libraries[] = {
    {"Libraries", "ucx", ucx_text, 1},
    {"Libraries", "hwloc", COLL_HWLOC_VERSION, 1},
    {"Libraries", "libibverbs", COLL_VERBS_VERSION, 1},
};

/* A kind of device, and why it cannot be used here.  The answer is found once, since
 * the question starts the driver. */
enum { MOST_DEVICES = 4, WHY_BYTES = 512 };
static char device_texts[MOST_DEVICES][WHY_BYTES];

static void describe_devices(void)
{
    for (int i = 0; coll__devices[i] && i < MOST_DEVICES; i++) {
        const struct coll__device *device = coll__devices[i];
        char why[WHY_BYTES / 2] = "";

        if (device->usable(why, sizeof(why)))
            snprintf(device_texts[i], WHY_BYTES, "%s; not usable here: %s",
                     device->what, why);
        else
            snprintf(device_texts[i], WHY_BYTES, "%s", device->what);
    }
}

/* Each function below has one list.  If the index is within the list, the function
 * fills in *feature and returns 1.  Otherwise it subtracts the list's length from the
 * index, for the next function, and returns 0. */
static int take_device(size_t *index, struct coll_feature *feature)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    for (int i = 0; coll__devices[i] && i < MOST_DEVICES; i++)
        if (!(*index)--) {
            pthread_once(&once, describe_devices);
            *feature = (struct coll_feature){"Devices", coll__devices[i]->name,
                                             device_texts[i], 1};
            return 1;
        }
    return 0;
}

static int take_boot(size_t *index, struct coll_feature *feature)
{
    for (int i = 0; coll__boots[i]; i++)
        if (!(*index)--) {
            *feature = (struct coll_feature){"Bootstraps", coll__boots[i]->name,
                                             coll__boots[i]->what, 1};
            return 1;
        }
    return 0;
}

static int take_transport(size_t *index, struct coll_feature *feature)
{
    for (int i = 0; coll__transports[i]; i++)
        if (!(*index)--) {
            *feature =
                (struct coll_feature){"Transports", coll__transports[i]->name,
                                      coll__transports[i]->what, 1};
            return 1;
        }
    return 0;
}

static int take_missing(size_t *index, const char *group,
                        struct coll_feature *feature)
{
    for (size_t i = 0; missing[i].group; i++)
        if (missing[i].group[0] == group[0] && !(*index)--) {
            *feature = missing[i];
            return 1;
        }
    return 0;
}

static void describe_ucx(void)
{
    int n = snprintf(ucx_text, sizeof(ucx_text),
                     "built with %s; loaded: ", COLL_UCX_VERSION);

    coll__ucx_loaded(ucx_text + n, sizeof(ucx_text) - (size_t)n);
}

static int take_library(size_t index, struct coll_feature *feature)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (index >= ARRAY_LEN(libraries))
        return 0;
    pthread_once(&once, describe_ucx);
    *feature = libraries[index];
    return 1;
}

int coll_feature_list(size_t index, struct coll_feature *feature)
{
    if (!feature)
        return COLL_ERR_INVALID;
    if (take_device(&index, feature) ||
        take_missing(&index, "Devices", feature) ||
        take_boot(&index, feature) ||
        take_missing(&index, "Bootstraps", feature) ||
        take_transport(&index, feature) || take_library(index, feature))
        return COLL_OK;
    return COLL_ERR_INVALID;
}

/* Can the ranks of a host copy directly between processes, with one copy?  A process may
 * still be out of reach; creating a communicator finds that out. */
static void note_single_copy(char *note, size_t len)
{
    struct coll__tune *tune = NULL;
    char why[CMA_WHY_BYTES];

    (void)coll__tune_open(&tune); /* for its limits; errors are logged */
    coll__tune_free(tune);
    if (coll__cma_usable(why, sizeof(why)))
        snprintf(note, len, "single copy does not work here: %s", why);
    else
        snprintf(note, len,
                 "single copy works here: messages of %zu bytes and more "
                 "that two ranks exchange are read straight from the sender's "
                 "memory, in operations of %zu bytes at most",
                 coll__limit(LIMIT_CMA_MIN), coll__limit(LIMIT_CMA_MAX));
}

/* Append the cost of leaving a cache, if this host has parts beyond one cache and its
 * firmware reports their distances. */
static void note_distances(char *note, size_t len)
{
    struct coll__inside inside;
    struct coll__farther numa, package;
    size_t n = strlen(note);

    coll__inside_load(&inside);
    numa = coll__inside_price(&inside, LEAVES_NUMA);
    package = coll__inside_price(&inside, LEAVES_PACKAGE);
    if (inside.numa > 0)
        n += (size_t)coll__print(
            note + n, len - n,
            "; to another NUMA node (distance %.2g) a message takes %.2g us "
            "longer",
            inside.numa, numa.alpha * 1e6);
    if (inside.package > 0 && n < len)
        coll__print(note + n, len - n,
                    "; to another package (distance %.2g) it takes %.2g us "
                    "longer",
                    inside.package, package.alpha * 1e6);
}

static void note_tcp(char *note, size_t len)
{
    struct coll__link link;

    coll__price_way_out(&link);
    coll__price_note(&link, note, len);
}

static int list_transport(size_t index, struct coll_transport_info *info)
{
    const struct coll__transport *transport;
    size_t n = 0;

    while (coll__transports[n])
        n++;
    if (index >= n || !info)
        return COLL_ERR_INVALID;
    transport = coll__transports[index];
    *info = (struct coll_transport_info){
        .name = transport->name,
        .what = transport->what,
        .is_allowed = !strcmp(transport->name, "self") ||
                      coll__word_in(transport->name,
                                    coll__param_text(PARAM_TRANSPORTS), ','),
    };
    info->is_usable = !transport->usable(info->why, sizeof(info->why));
    if (transport == coll__transport_find("shm")) {
        note_single_copy(info->note, sizeof(info->note));
        note_distances(info->note, sizeof(info->note));
    }
    if (transport == coll__transport_find("ucx"))
        coll__ucx_note(info->note, sizeof(info->note));
    if (transport == coll__transport_find("tcp"))
        note_tcp(info->note, sizeof(info->note));
    return COLL_OK;
}

int coll_transport_list(size_t index, struct coll_transport_info *info)
{
    return coll__log_done(list_transport(index, info));
}
