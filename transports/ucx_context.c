/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_context.c - the process's UCP context: made for the first worker, with
 * what is known to go wrong avoided; ended with the last one.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct coll__lock context_lock = COLL__LOCK(NULL);
static ucp_context_h shared_context; /* these are under context_lock */
static int n_users;
static int was_used;     /* ever, by this process or its parents */
static unsigned used_by; /* the generation of who did */

/* Say whether there is an RDMA device that is not NVIDIA's. */
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

    ucp_get_version(&major, &minor, &release);
    return major == 1 && minor < 14;
}

/* UCX makes shared memory with names in /dev/shm, or with System V's keys, and
 * takes those back a moment later; a process that is killed in that moment
 * leaves it behind for good.  Endpoints that are to notice a dead peer do not
 * use such memory anyhow. */
static void avoid_names(ucp_config_t *config)
{
    const char *tls = getenv("UCX_TLS");

    if (!tls)
        ucp_config_modify(config, "TLS", "^posix,sysv");
    else
        log_info("ucx",
                 "UCX_TLS is %s; unset it to have UCX without posix and "
                 "sysv, whose segments a killed rank can leave behind",
                 tls);
}

/* Avoid what is known to go wrong; what the user has set stays.  UCX up to 1.18
 * drops every UD packet of devices whose driver does not report the kind of
 * packet (rxe, irdma), unless told not to look. */
static void tune(ucp_config_t *config)
{
    avoid_names(config);
    if (coll__ucx_is_fragile() && !getenv("UCX_ZCOPY_THRESH"))
        ucp_config_modify(config, "ZCOPY_THRESH", "inf");
    if (!getenv("UCX_UD_ETH_DGID_CHECK") &&
        !getenv("UCX_UD_VERBS_ETH_DGID_CHECK") && has_plain_verbs())
        ucp_config_modify(config, "UD_ETH_DGID_CHECK", "n");
}

static ucs_status_t make_context(ucp_context_h *context)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_AM,
        .mt_workers_shared = 1,
        .name = "coll",
    };
    ucp_config_t *config;
    ucs_status_t rc = ucp_config_read(NULL, NULL, &config);

    if (rc != UCS_OK)
        return rc;
    tune(config);
    rc = ucp_init(&params, config, context);
    ucp_config_release(config);
    return rc;
}

ucs_status_t coll__ucx_context_get(ucp_context_h *context)
{
    ucs_status_t rc = UCS_OK;

    coll__lock(&context_lock);
    if (was_used && coll__is_inherited(used_by))
        rc = UCX_AFTER_FORK;
    was_used = 1;
    if (rc == UCS_OK)
        used_by = coll__generation;
    if (rc == UCS_OK && !n_users)
        rc = make_context(&shared_context);
    if (rc == UCS_OK) {
        n_users++;
        *context = shared_context;
    }
    coll__unlock(&context_lock);
    return rc;
}

void coll__ucx_context_put(void)
{
    coll__lock(&context_lock);
    if (!--n_users)
        ucp_cleanup(shared_context);
    coll__unlock(&context_lock);
}
