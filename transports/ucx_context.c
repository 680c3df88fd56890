/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_context.c - the process's UCP contexts, one for each set of devices.  The first
 * worker makes its context, with settings that avoid known faults; the last one ends it.
 *
 * A context for certain devices uses RDMA alone: then UCX opens no TCP port, which would
 * answer any caller.
 */
#include "transports/ucx.h"
#include "transports/ucx_price.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct coll__lock context_lock = COLL__LOCK(NULL);
static struct ucx_context *contexts; /* these are under context_lock */
static int was_used;     /* ever used, by this process or its parents */
static unsigned used_by; /* the generation of who did */

/* Is there an RDMA device of another maker than NVIDIA? */
static int has_plain_verbs(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    struct dirent *entry;
    int found = 0;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, "mlx", 3))
            found = 1;
    if (dir)
        closedir(dir);
    return found;
}

int coll__ucx_is_fragile(void)
{
    unsigned major, minor, release;

    coll__ucx.ucp_get_version(&major, &minor, &release);
    return major == 1 && minor < 14;
}

/* UCX makes shared memory with names in /dev/shm, or with System V keys, and removes the
 * names a moment later.  A process that is killed in that moment leaves the memory
 * behind.  Endpoints with error handling do not use such memory anyhow, so it is switched
 * off. */
static void avoid_names(ucp_config_t *config)
{
    const char *tls = getenv("UCX_TLS");

    if (!tls)
        coll__ucx.ucp_config_modify(config, "TLS", "^posix,sysv");
    else
        log_info("ucx",
                 "UCX_TLS is %s; unset it to have UCX without posix and "
                 "sysv, whose segments a killed rank can leave behind",
                 tls);
}

/* A setting, and the variables by which the user may have set it, or a part of it. */
struct setting {
    const char *name, *value, *aliases[4];
};

static int is_users(const char *name)
{
    char variable[64];

    snprintf(variable, sizeof(variable), "UCX_%s", name);
    return getenv(variable) != NULL;
}

static void set(ucp_config_t *config, const struct setting *setting)
{
    int is_free = !is_users(setting->name);

    for (size_t i = 0; i < ARRAY_LEN(setting->aliases); i++)
        if (setting->aliases[i] && is_users(setting->aliases[i]))
            is_free = 0;
    if (is_free)
        coll__ucx.ucp_config_modify(config, setting->name, setting->value);
}

/* UCX up to 1.18 drops every UD packet of devices whose driver does not report the
 * kind of packet (rxe, irdma), unless told not to look. */
static void tune_others(ucp_config_t *config)
{
    static const struct setting check = {
        "UD_ETH_DGID_CHECK", "n", {"UD_VERBS_ETH_DGID_CHECK"}};

    set(config, &check);
}

/* Soft-RoCE takes the usual retry count of 7 as endless.  It also pins the usual 4096
 * buffers of 8 KiB of each queue page by page, which takes seconds. */
static void tune_soft(ucp_config_t *config)
{
    static const struct setting repeats = {
        "RC_RETRY_COUNT", "6", {"RC_VERBS_RETRY_COUNT"}};
    static const struct setting queues = {
        "IB_RX_QUEUE_LEN",
        "512",
        {"RC_RX_QUEUE_LEN", "RC_VERBS_RX_QUEUE_LEN", "UD_RX_QUEUE_LEN",
         "UD_VERBS_RX_QUEUE_LEN"}};

    set(config, &repeats);
    set(config, &queues);
}

/* Use these devices; UCX spreads large messages over all of them.  From 32 KiB on use
 * rendezvous, with memory that is registered once.  By its own estimate UCX would never
 * use rendezvous on some devices (soft-RoCE). */
static void tune_rails(ucp_config_t *config, const struct coll__rails *rails)
{
    static const struct setting ways = {"TLS", "ib", {NULL}};
    static const struct setting large = {
        "RNDV_THRESH", "32768", {"RNDV_INTER_THRESH"}};
    char n[16];
    const struct setting spread = {"MAX_RNDV_RAILS", n, {"MAX_RNDV_LANES"}};

    snprintf(n, sizeof(n), "%d", rails->n);
    set(config, &ways);
    set(config, &large);
    coll__ucx.ucp_config_modify(config, "NET_DEVICES", rails->devices);
    if (rails->n > 1)
        set(config, &spread);
    if (rails->is_others)
        tune_others(config);
    if (rails->is_soft)
        tune_soft(config);
}

/* All ways that UCX has. */
static void tune_any(ucp_config_t *config)
{
    avoid_names(config);
    if (has_plain_verbs())
        tune_others(config);
}

/* Set what avoids known faults; the user's settings stay.  An old UCX must not send
 * eagerly without a copy; rendezvous is not affected. */
static void tune(ucp_config_t *config, const struct coll__rails *rails)
{
    static const struct setting copies = {"ZCOPY_THRESH", "inf", {NULL}};

    if (rails->n)
        tune_rails(config, rails);
    else
        tune_any(config);
    if (coll__ucx_is_fragile())
        set(config, &copies);
}

/* Log if UCX supports GPUs.  It gets no GPU memory: UCX copies that in its own streams,
 * which may have to wait for a stream that waits for the same message
 * (CUDA_DEVICE_MAX_CONNECTIONS). */
static void tell_memory(ucp_context_h context)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};

    if (coll__ucx.ucp_context_query(context, &attr) == UCS_OK &&
        attr.memory_types & (1u << UCS_MEMORY_TYPE_CUDA))
        log_info(
            "ucx",
            "this UCX supports CUDA, but GPU buffers pass through host memory: "
            "UCX copies them in streams of its own, which may wait behind the "
            "streams that wait for the message");
}

static ucs_status_t make_ucp(const struct coll__rails *rails,
                             ucp_context_h *context)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_AM,
        .mt_workers_shared = 1,
        .name = "coll",
    };
    ucp_config_t *config;
    ucs_status_t rc = coll__ucx.ucp_config_read(NULL, NULL, &config);

    if (rc != UCS_OK)
        return rc;
    log_info("ucx", "UCX %s", coll__ucx.ucp_get_version_string());
    tune(config, rails);
    rc = coll__ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params,
                                    config, context);
    coll__ucx.ucp_config_release(config);
    if (rc == UCS_OK)
        tell_memory(*context);
    return rc;
}

/* Return the context for these devices, new if there is none. */
static ucs_status_t find(const struct coll__rails *rails,
                         struct ucx_context **out)
{
    struct ucx_context *context = contexts;
    ucs_status_t rc;

    while (context && strcmp(context->devices, rails->devices) != 0)
        context = context->next;
    *out = context;
    if (context)
        return UCS_OK;
    context = calloc(1, sizeof(*context));
    if (!context)
        return UCS_ERR_NO_MEMORY;
    rc = make_ucp(rails, &context->ucp);
    if (rc != UCS_OK) {
        free(context);
        return rc;
    }
    snprintf(context->devices, sizeof(context->devices), "%s", rails->devices);
    context->next = contexts;
    *out = contexts = context;
    return UCS_OK;
}

/* Load UCX, unless it cannot work in this process.  Returns NULL, or why not. */
static const char *prepare(void)
{
    if (was_used && coll__is_inherited(used_by))
        return UCX_AFTER_FORK_TEXT;
    was_used = 1;
    used_by = coll__generation;
    return coll__ucx_load();
}

int coll__ucx_context_get(const struct coll__rails *rails,
                          struct ucx_context **context, char *why, size_t len)
{
    ucs_status_t rc = UCS_ERR_UNSUPPORTED;
    const char *fault;

    coll__lock(&context_lock);
    fault = prepare();
    if (!fault)
        rc = find(rails, context);
    if (rc == UCS_OK)
        (*context)->n_users++;
    coll__unlock(&context_lock);
    if (rc == UCS_OK)
        return COLL_OK;
    if (fault)
        snprintf(why, len, "%s", fault);
    else
        snprintf(why, len,
                 "UCX cannot start: %s; see UCX_LOG_LEVEL=info, and unset "
                 "UCX_TLS and "
                 "UCX_NET_DEVICES",
                 coll__ucx.ucs_status_string(rc));
    return rc == UCS_ERR_NO_MEMORY ? COLL_ERR_NOMEM : COLL_ERR_TRANSPORT;
}

void coll__ucx_context_put(struct ucx_context *context)
{
    struct ucx_context **at = &contexts;

    coll__lock(&context_lock);
    if (!--context->n_users) {
        while (*at != context)
            at = &(*at)->next;
        *at = context->next;
        coll__ucx.ucp_cleanup(context->ucp);
        free(context);
    }
    coll__unlock(&context_lock);
}
