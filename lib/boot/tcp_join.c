/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_join.c - every other rank at the rendezvous: find rank 0, prove the
 * secret, and try again until the deadline while it is not up yet. */
#include "lib/boot/door.h"
#include "lib/boot/tcp.h"
#include "lib/boot/tcp_msg.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROBE_TIME 2.0   /* s, for one of several candidate ports */
#define CONNECT_TIME 5.0 /* s, for one of several addresses */
#define FIRST_PAUSE 0.01
#define LAST_PAUSE 0.25

struct search {
    const struct coll__tcp_spec *spec;
    double deadline;
    int fd;         /* the connection, once it is found */
    char last[256]; /* why the last attempt failed */
};

static void pause_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

static double sooner(double a, double b) { return a < b ? a : b; }

static const char *meaning(enum coll__knock knock)
{
    switch (knock) {
    case KNOCK_UNKNOWN:
        return "it knows no such job";
    case KNOCK_EARLY:
        return "rank 0 has not come there yet";
    case KNOCK_FALSE:
        return "it could not prove the job's secret";
    case KNOCK_LOST:
        return "it closed the connection";
    default:
        return "it did not answer";
    }
}

/* Try one address; 1 found, 0 not (yet), negative when there is no hope. */
static int try_at(struct search *search, const struct coll__addr *addr)
{
    const struct coll__tcp_spec *spec = search->spec;
    struct coll__hello hello = {
        .kind = DOOR_BOOT,
        .from = (uint32_t)spec->rank,
        .size = (uint32_t)spec->size,
        .generation = spec->generation,
    };
    int is_only = spec->n_ports == 1;
    double now = coll__now(), patience = is_only ? 1e9 : PROBE_TIME;
    enum coll__knock knock;
    char where[COLL__ADDR_TEXT];
    int fd;

    coll__net_text(addr, where);
    fd = coll__net_connect(addr, sooner(search->deadline, now + CONNECT_TIME));
    if (fd < 0) {
        snprintf(search->last, sizeof(search->last), "%s: %s", where,
                 strerror(-fd));
        return 0;
    }
    knock = coll__door_knock(fd, spec->secret, &hello,
                             sooner(search->deadline, now + patience));
    if (knock == KNOCK_IN) {
        search->fd = fd;
        return 1;
    }
    close(fd);
    snprintf(search->last, sizeof(search->last), "%s: %s", where,
             meaning(knock));
    if (is_only && (knock == KNOCK_UNKNOWN || knock == KNOCK_FALSE)) {
        log_error("boot", "rank %d was not let in at %s: %s; %s", spec->rank,
                  where, meaning(knock), spec->remedy);
        return COLL_ERR_BOOTSTRAP;
    }
    return 0;
}

/* Try every candidate once. */
static int try_all(struct search *search)
{
    const struct coll__tcp_spec *spec = search->spec;

    for (int p = 0; p < spec->n_ports; p++)
        for (int a = 0; a < spec->n_addrs; a++) {
            struct coll__addr addr = spec->addrs[a];
            int found;

            coll__net_set_port(&addr, (uint16_t)(coll__net_port(&addr) + p));
            found = try_at(search, &addr);
            if (found || coll__now() >= search->deadline)
                return found;
        }
    return 0;
}

static int find_root(struct search *search)
{
    double start = coll__now(), pause = FIRST_PAUSE;
    int found;

    for (;;) {
        double left;

        found = try_all(search);
        left = search->deadline - coll__now();
        if (found || left <= 0)
            break;
        pause_for(sooner(pause, left));
        pause = sooner(2 * pause, LAST_PAUSE);
    }
    if (found)
        return found > 0 ? COLL_OK : found;
    log_error("boot",
              "rank %d could not reach rank 0 within %.3g s (last: "
              "%s); is rank 0 running, and its address reachable from here?",
              search->spec->rank, search->deadline - start, search->last);
    return COLL_ERR_BOOTSTRAP;
}

int coll__tcp_join(const struct coll__tcp_spec *spec, double deadline,
                   struct tcp_state **state)
{
    struct search search = {.spec = spec, .deadline = deadline};
    int status = find_root(&search);

    if (status)
        return status;
    *state = malloc(sizeof(**state) + sizeof(int));
    if (!*state) {
        log_error("boot", "no memory for a connection to rank 0");
        close(search.fd);
        return COLL_ERR_NOMEM;
    }
    (*state)->n_fds = 1;
    (*state)->fds[0] = search.fd;
    return COLL_OK;
}
