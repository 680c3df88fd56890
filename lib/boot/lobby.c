/* SPDX-License-Identifier: BSD-3-Clause */
/* lobby.c - "lobby": a newcomer waits at collrun until the ranks let it in; and what ranks
 * ask there. */
#include "lib/boot/lobby.h"
#include "lib/boot/boot.h"
#include "lib/boot/launcher_env.h"
#include "lib/boot/list.h"
#include "lib/boot/rendezvous.h"
#include "lib/net/net.h"
#include "lib/net/reactor.h"
#include "lib/net/words.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"

#include <errno.h>
#include <float.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEX_BYTES (2 * COLL_UNIQUE_ID_BYTES + 1)

/* Wait for a word: 1, or -1 if the launcher has gone or the deadline has passed. */
static int await(struct coll__words *words, double deadline,
                 char word[COLL__WORD])
{
    struct pollfd pfd = {.fd = words->fd, .events = POLLIN};
    int is_there;

    while (!(is_there = coll__words_take(words, word))) {
        if (coll__now() >= deadline)
            return -1;
        coll__reactor_poll(&pfd, 1, deadline);
    }
    return is_there;
}

/* Exchange the nonces on a new connection. */
static int introduce(struct coll__words *words, double deadline)
{
    unsigned char mine[COLL__NONCE_BYTES], theirs[COLL__NONCE_BYTES],
        secret[COLL__SECRET_BYTES];

    coll__auth_random(mine, sizeof(mine));
    if (coll__net_write(words->fd, mine, sizeof(mine), deadline) ||
        coll__net_read(words->fd, theirs, sizeof(theirs), deadline))
        return -1;
    coll__auth_from_text(coll__param_text(PARAM_JOB_SECRET), secret);
    coll__words_init(words, 0, secret, mine, theirs);
    coll__auth_wipe(secret, sizeof(secret));
    return 0;
}

/* Connect to the launcher. */
static int enter(struct coll__words *words, double deadline)
{
    const char *where = coll__launcher_env("COLLRUN_LOBBY");
    struct coll__addr addrs[COLL__MAX_ADDRS];
    int n_addrs, err = -ETIMEDOUT;
    char host[256];
    uint16_t port;

    words->fd = -1;
    if (coll__net_split(where, host, sizeof(host), &port)) {
        log_error("boot",
                  "COLLRUN_LOBBY=%s is not valid; collrun sets it, and nobody "
                  "else should",
                  where);
        return COLL_ERR_BOOTSTRAP;
    }
    n_addrs = coll__net_resolve(host, port, addrs);
    if (n_addrs < 0)
        return n_addrs;
    for (int i = 0; i < n_addrs && words->fd < 0; i++) {
        words->fd = coll__net_connect(&addrs[i], deadline);
        err = words->fd < 0 ? words->fd : 0;
    }
    if (words->fd >= 0 && !introduce(words, deadline))
        return COLL_OK;
    log_error("boot", "collrun cannot be reached at %s: %s", where,
              err ? coll__net_error(-err) : "it does not answer");
    coll__words_close(words);
    return COLL_ERR_BOOTSTRAP;
}

/* Connect and ask something; answer[] gets collrun's words.  On an error the connection is
 * closed. */
static int ask(struct coll__words *words, const char *question, double timeout,
               char answer[COLL__WORD])
{
    double deadline = coll__now() + timeout;
    int status = enter(words, deadline);

    if (status || (!coll__words_put(words, question) &&
                   await(words, deadline, answer) > 0))
        return status;
    log_error("boot", "collrun did not answer at %s; has it ended?",
              coll__launcher_env("COLLRUN_LOBBY"));
    coll__words_close(words);
    return COLL_ERR_BOOTSTRAP;
}

int coll__lobby_count(double timeout, int *n)
{
    struct coll__words words;
    char answer[COLL__WORD];
    int n_waiting, status;

    if (!*coll__launcher_env("COLLRUN_LOBBY")) {
        *n = 0;
        return COLL_OK;
    }
    status = ask(&words, "count", timeout, answer);
    if (status)
        return status;
    coll__words_close(&words);
    if (sscanf(answer, "waiting %d", &n_waiting) != 1) {
        log_error("boot", "collrun does not understand this libcoll; both must "
                          "be of one version");
        return COLL_ERR_BOOTSTRAP;
    }
    *n = n_waiting;
    return COLL_OK;
}

int coll__lobby_grow(const struct coll_unique_id *id, int first, int n,
                     double timeout, struct coll__words *launcher)
{
    char hex[HEX_BYTES], question[COLL__WORD], answer[COLL__WORD];
    int n_waiting = 0, status;

    if (!*coll__launcher_env("COLLRUN_LOBBY")) {
        log_error("boot",
                  "the launcher has no newcomers; start the job by collrun "
                  "--min-np, or pass an id");
        return COLL_ERR_BOOTSTRAP;
    }
    coll__auth_hex(id, sizeof(*id), hex);
    snprintf(question, sizeof(question), "grow %d %d %d %s", n, first,
             first + n, hex);
    status = ask(launcher, question, timeout, answer);
    coll__auth_wipe(hex, sizeof(hex));
    coll__auth_wipe(question, sizeof(question));
    if (status || !strcmp(answer, "ok"))
        return status;
    coll__words_close(launcher);
    sscanf(answer, "waiting %d", &n_waiting);
    log_error("boot",
              "%d newcomers are to join, but only %d wait; see "
              "coll_comm_waiting()",
              n, n_waiting);
    return COLL_ERR_BOOTSTRAP;
}

int coll__lobby_gone(struct coll__words *launcher, int *rank)
{
    char word[COLL__WORD];

    return coll__words_take(launcher, word) > 0 &&
           sscanf(word, "gone %d", rank) == 1;
}

/* ---- the newcomer's bootstrap ------------------------------------------------ */

static int detect(void)
{
    static const char *const needed[] = {"COLLRUN_LOBBY", "COLL_JOB_SECRET",
                                         NULL};

    return coll__launcher_env_has_all("COLLRUN_NEWCOMER", needed,
                                      "start ranks by collrun");
}

/* Wait for the group that this process is to join. */
static int await_seat(struct coll__words *words, int *rank, int *size,
                      struct coll_unique_id *id)
{
    char word[COLL__WORD], hex[HEX_BYTES];
    int is_there;

    snprintf(word, sizeof(word), "join %s",
             coll__launcher_env("COLLRUN_NEWCOMER"));
    is_there = coll__words_put(words, word) ? -1 : await(words, DBL_MAX, word);
    if (is_there > 0 &&
        sscanf(word, "seat %d %d %256s", rank, size, hex) == 3 &&
        !coll__auth_unhex(hex, id, sizeof(*id)))
        return COLL_OK;
    log_error("boot", is_there < 0
                          ? "the launcher has gone while this process waited "
                            "to join the job"
                          : "collrun does not understand this libcoll; both "
                            "must be of one version");
    return is_there < 0 ? COLL_ERR_ABORTED : COLL_ERR_BOOTSTRAP;
}

static void hang_up(struct coll__boot *boot)
{
    coll__words_close(boot->lobby);
    free(boot->lobby);
    boot->lobby = NULL;
}

/* Wait to be let in, and meet the ranks. */
static int join(struct coll__boot *boot)
{
    struct coll_unique_id id;
    int rank, size, status = enter(boot->lobby, coll__now() + boot->timeout);

    if (status)
        return status;
    log_info("boot", "newcomer %s waits until the ranks let it in",
             coll__launcher_env("COLLRUN_NEWCOMER"));
    status = await_seat(boot->lobby, &rank, &size, &id);
    if (!status)
        status = coll__boot_open_id(boot, &id, size, rank);
    coll__auth_wipe(&id, sizeof(id));
    boot->ops = &coll__boot_lobby; /* instead of the id's */
    return status;
}

static int open_lobby(struct coll__boot *boot)
{
    int status;

    boot->lobby = malloc(sizeof(*boot->lobby));
    if (!boot->lobby) {
        log_error("boot", "no memory for a connection to the launcher");
        return COLL_ERR_NOMEM;
    }
    status = join(boot);
    if (status)
        hang_up(boot);
    return status;
}

/* Until now collrun would have told the ranks of this process's death. */
static void close_lobby(struct coll__boot *boot)
{
    coll__rendezvous_close(boot);
    hang_up(boot);
}

const struct coll__boot_ops coll__boot_lobby = {
    .name = "lobby",
    .what = "COLLRUN_NEWCOMER and COLLRUN_LOBBY",
    .identity = {"COLLRUN_NEWCOMER", "COLLRUN_LOBBY", NULL},
    .detect = detect,
    .open = open_lobby,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = close_lobby,
};
