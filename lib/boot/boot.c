/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.c - choose the bootstrap that the environment describes. */
#include "lib/boot/boot.h"
#include "lib/boot/joined.h"
#include "lib/boot/launcher.h"
#include "lib/boot/launcher_env.h"
#include "lib/net/presence.h"
#include "lib/net/this_host.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void list_names(char *text, size_t len)
{
    size_t at = 0;

    for (int i = 0; coll__boots[i] && at < len; i++)
        at += (size_t)snprintf(text + at, len - at, "%s%s", i ? ", " : "",
                               coll__boots[i]->name);
}

/* Find the bootstrap that COLL_BOOTSTRAP forces. */
static int find_forced(const char *name, const struct coll__boot_ops **ops)
{
    char known[128];
    int is_there;

    for (int i = 0; coll__boots[i]; i++) {
        if (strcmp(coll__boots[i]->name, name))
            continue;
        *ops = coll__boots[i];
        is_there = coll__boots[i]->detect();
        if (is_there > 0)
            return COLL_OK;
        if (!is_there)
            log_error("boot",
                      "COLL_BOOTSTRAP=%s, but no such launcher started this "
                      "process: %s is missing; unset COLL_BOOTSTRAP, or start "
                      "the ranks by that launcher",
                      name, coll__boots[i]->what);
        return is_there ? is_there : COLL_ERR_BOOTSTRAP;
    }
    list_names(known, sizeof(known));
    log_error("boot",
              "COLL_BOOTSTRAP=%s is not known here; it must be one of "
              "%s",
              name, known);
    return COLL_ERR_INVALID;
}

static int find(const struct coll__boot_ops **ops)
{
    for (int i = 0; coll__boots[i]; i++) {
        int is_there = coll__boots[i]->detect();

        if (is_there < 0)
            return is_there;
        if (!is_there)
            continue;
        *ops = coll__boots[i];
        return COLL_OK;
    }
    log_error("boot", "no bootstrap fits this environment");
    return COLL_ERR_BOOTSTRAP;
}

/* Claim the launcher's variables for this process.  A launcher counts each process that
 * it started once: a child of a process that has joined is not that rank. */
static int claim(const struct coll__boot_ops *ops)
{
    static atomic_uint claimed; /* the generation that has joined, plus 1; 0: none */
    unsigned mine = coll__generation_now() + 1, none = 0;

    if (!strcmp(ops->name, "single") ||
        atomic_compare_exchange_strong(&claimed, &none, mine) || none == mine)
        return COLL_OK;
    log_error("boot",
              "%s describes the parent process, which has joined; a "
              "child made by fork() makes communicators by coll_comm_create()",
              ops->what);
    return COLL_ERR_INVALID;
}

/* Check that no ancestor has joined as this rank: a child of a rank that has called
 * exec() is not that rank either. */
static int is_no_child(const struct coll__boot_ops *ops)
{
    int pid = coll__joined_ancestor(ops);

    if (!pid)
        return COLL_OK;
    log_error("boot",
              "process %d, which started this program, has joined as the rank "
              "that %s=%s describes, and a rank is one process; set "
              "COLL_BOOTSTRAP=single to run this program alone or, if a "
              "launcher within that rank started it, to that launcher's name",
              pid, *ops->identity, coll__launcher_env(*ops->identity));
    return COLL_ERR_INVALID;
}

int coll__boot_open_env(struct coll__boot *boot, double timeout)
{
    const struct coll__boot_ops *ops;
    int status = coll__param_is_set(PARAM_BOOTSTRAP)
                     ? find_forced(coll__param_text(PARAM_BOOTSTRAP), &ops)
                     : find(&ops);

    if (!status)
        status = claim(ops);
    if (!status)
        status = is_no_child(ops);
    if (status)
        return status;
    *boot = (struct coll__boot){.ops = ops, .timeout = timeout};
    if (ops->given && *coll__launcher_env(ops->given))
        coll__launcher_find(ops->given);
    status = ops->open(boot);
    if (status)
        return status;
    log_info("boot", "rank %d of %d by %s", boot->rank, boot->size, ops->name);
    if (boot->size > 1) /* else its children may be jobs of one rank, too */
        coll__joined_mark(ops);
    return COLL_OK;
}

int coll__boot_places(struct coll__boot *boot, const void *in, size_t len,
                      void *out)
{
    return boot->ops->places(boot, in, len, out);
}

void coll__boot_tell(struct coll__boot *boot, int status, const char *text)
{
    boot->ops->tell(boot, status, text);
}

int coll__boot_origin_failed(const struct coll__boot *boot,
                             char why[COLL__TEXT_MAX])
{
    const struct coll__boot_origin *origin = &boot->origin;

    return origin->failed ? origin->failed(origin->arg, why) : COLL_OK;
}

void coll__boot_tell_nobody(struct coll__boot *boot, int status,
                            const char *text)
{
    (void)boot, (void)status, (void)text;
}

struct share {
    unsigned char secret[COLL__SECRET_BYTES], host[COLL__HOST_BYTES];
    unsigned char presence[COLL__PRESENCE_BYTES];
};

static int have_one_id(const struct share *all, size_t size)
{
    for (size_t r = 1; r < size; r++)
        if (memcmp(all[r].host, all[0].host, sizeof(all->host)) != 0)
            return 0;
    return 1;
}

/* All ranks' hosts have the same id: find out whether they are one host or clones.  Each
 * rank looks for rank 0's token, which rank 0 holds until all have answered. */
static int find_clones(struct coll__boot *boot, const struct share *root,
                       int (*allgather)(struct coll__boot *boot, const void *in,
                                        size_t len, void *out))
{
    size_t size = (size_t)boot->size;
    char mine = !coll__presence_is_missing(root->presence);
    char *answers = calloc(size, 1);
    int status;

    if (!answers) {
        log_error("boot", "no memory for a group of %zu ranks", size);
        return COLL_ERR_NOMEM;
    }
    status = allgather(boot, &mine, 1, answers);
    for (size_t r = 0; r < size; r++)
        boot->is_one_host &= answers[r];
    free(answers);
    return status;
}

int coll__boot_share(struct coll__boot *boot,
                     int (*allgather)(struct coll__boot *boot, const void *in,
                                      size_t len, void *out))
{
    size_t size = (size_t)boot->size;
    struct share mine = {.secret = {0}}, *all = calloc(size, sizeof(*all));
    int status, fd;

    if (!all) {
        log_error("boot", "no memory for a group of %zu ranks", size);
        return COLL_ERR_NOMEM;
    }
    if (!boot->rank)
        coll__auth_random(mine.secret, sizeof(mine.secret));
    coll__host_id(mine.host);
    fd = coll__presence_open(mine.presence);
    status = allgather(boot, &mine, sizeof(mine), all);
    memcpy(boot->secret, all[0].secret, sizeof(boot->secret));
    boot->is_one_host = have_one_id(all, size);
    if (!status && size > 1 && boot->is_one_host)
        status = find_clones(boot, &all[0], allgather);
    if (fd >= 0)
        close(fd);
    coll__auth_wipe(all, size * sizeof(*all));
    coll__auth_wipe(&mine, sizeof(mine));
    free(all);
    return status;
}

void coll__boot_close(struct coll__boot *boot) { boot->ops->close(boot); }
