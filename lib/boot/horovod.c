/* SPDX-License-Identifier: BSD-3-Clause */
/* horovod.c - ranks that horovodrun started.  Its variables say which ranks there are;
 * its rendezvous server stores values for the ranks, by HTTP.  Rank 0 stores a unique id
 * there, by which the ranks meet.
 *
 * Whoever reaches that server can read the values: the job is as open to strangers as
 * Horovod's own.
 */
#include "lib/boot/list.h"
#include "lib/boot/rendezvous.h"
#include "lib/boot/launcher_env.h"
#include "lib/net/net.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER 2048    /* bytes of an answer that are kept */
#define PAUSE_US 50000 /* between two requests for the id */
#define TALK_TIME 5.0  /* s, for a request that begins before the deadline */

static atomic_uint n_opened; /* the same on every rank */

static int detect(void)
{
    static const char *const needed[] = {"HOROVOD_SIZE",
                                         "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                                         "HOROVOD_GLOO_RENDEZVOUS_PORT", NULL};

    return coll__launcher_env_has_all(
        "HOROVOD_RANK", needed,
        "start the ranks by horovodrun --gloo, mpirun or "
        "collrun");
}

/* ---- its server ---------------------------------------------------------- */

static int no_server(const char *why)
{
    log_error("boot",
              "horovodrun's rendezvous server at %s:%s %s; is horovodrun "
              "still there?",
              coll__launcher_env("HOROVOD_GLOO_RENDEZVOUS_ADDR"),
              coll__launcher_env("HOROVOD_GLOO_RENDEZVOUS_PORT"), why);
    return COLL_ERR_BOOTSTRAP;
}

static int call_server(double deadline)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];
    long port;
    int n, fd = -1,
           status = coll__launcher_env_number("HOROVOD_GLOO_RENDEZVOUS_PORT", 1,
                                              65535, &port);

    if (status)
        return status;
    n = coll__net_resolve(coll__launcher_env("HOROVOD_GLOO_RENDEZVOUS_ADDR"),
                          (uint16_t)port, addrs);
    if (n < 0)
        return n;
    for (int i = 0; i < n && fd < 0; i++)
        fd = coll__net_connect(&addrs[i], deadline);
    return fd >= 0 ? fd : no_server("cannot be reached");
}

/* Read until the server closes the connection or the buffer is full. */
static void read_answer(int fd, char answer[ANSWER], double deadline)
{
    size_t n = 0;

    while (n < ANSWER - 1 &&
           coll__net_read(fd, answer + n, 1, deadline) == COLL_OK)
        n++;
    answer[n] = '\0';
}

/* Send a request; returns the answer's HTTP code and sets its text, or a status,
 * logged. */
static int talk(const char *request, char answer[ANSWER], double deadline)
{
    int fd = call_server(deadline), code = 0, status;

    if (fd < 0)
        return fd;
    status = coll__net_write(fd, request, strlen(request), deadline);
    if (!status)
        read_answer(fd, answer, deadline);
    close(fd);
    if (status || sscanf(answer, "HTTP/%*d.%*d %d", &code) != 1 || code < 1)
        return no_server("does not answer as an HTTP server");
    return code;
}

static int lay_down(const char *key, const char *text, double deadline)
{
    char request[ANSWER], answer[ANSWER];
    int code;

    snprintf(request, sizeof(request),
             "PUT /coll/%s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%.1024s", key,
             strlen(text), text);
    code = talk(request, answer, deadline);
    if (code < 0)
        return code;
    return code == 200 ? COLL_OK : no_server("does not keep what it is given");
}

static int pick_up(const char *key, char text[ANSWER], double deadline)
{
    char request[256], answer[ANSWER];
    const char *body;
    int code;

    snprintf(request, sizeof(request), "GET /coll/%s HTTP/1.0\r\n\r\n", key);
    while ((code = talk(request, answer, deadline + TALK_TIME)) == 404 &&
           coll__now() < deadline)
        usleep(PAUSE_US);
    if (code < 0)
        return code;
    body = strstr(answer, "\r\n\r\n");
    if (code == 200 && body) {
        snprintf(text, ANSWER, "%s", body + 4);
        return COLL_OK;
    }
    if (code != 404)
        return no_server("does not give what rank 0 has laid down");
    log_error("boot", "rank 0 did not come to horovodrun's rendezvous server "
                      "in time; did it end early, or never call "
                      "coll_comm_create_env()?");
    return COLL_ERR_BOOTSTRAP;
}

/* ---- meeting ------------------------------------------------------------- */

static int share_id(int rank, struct coll_unique_id *id, double timeout)
{
    unsigned n = atomic_fetch_add_explicit(&n_opened, 1, memory_order_relaxed);
    char key[32], text[ANSWER] = "none";
    double deadline = coll__now() + timeout;
    int status = COLL_OK, rc;

    snprintf(key, sizeof(key), "id.%u", n);
    if (!rank) {
        status = coll_get_unique_id(id);
        if (!status)
            coll__auth_hex(id->bytes, sizeof(id->bytes), text);
        rc = lay_down(key, text, deadline);
        return status ? status : rc;
    }
    status = pick_up(key, text, deadline);
    if (status || !coll__auth_unhex(text, id->bytes, sizeof(id->bytes)))
        return status;
    log_error("boot", "rank 0 could not listen for the others; see its own "
                      "messages");
    return COLL_ERR_BOOTSTRAP;
}

static int open_horovod(struct coll__boot *boot)
{
    struct coll_unique_id id = {{0}};
    int rank = -1, size,
        status = coll__launcher_env_place("HOROVOD_RANK", "HOROVOD_SIZE", &rank,
                                          &size);

    if (!status)
        status = share_id(rank, &id, boot->timeout);
    if (!status)
        status = coll__boot_open_id(boot, &id, size, rank);
    if (status && !rank) /* the other ranks may not have got the id */
        coll__boot_free_id(&id);
    boot->ops = &coll__boot_horovod;
    coll__auth_wipe(&id, sizeof(id));
    return status;
}

const struct coll__boot_ops coll__boot_horovod = {
    .name = "horovod",
    .what = "HOROVOD_RANK, HOROVOD_SIZE and horovodrun's other variables",
    .given = "HOROVOD_RANK",
    .identity = {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                 "HOROVOD_GLOO_RENDEZVOUS_PORT", NULL},
    .detect = detect,
    .open = open_horovod,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};
