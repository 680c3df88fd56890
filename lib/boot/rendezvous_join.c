/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_join.c - the other ranks at the rendezvous.
 *
 * A rank looks for rank 0 at all of its addresses, until the deadline while rank 0 is not
 * up yet.  It says that it is here, hands in its block, and receives its parent's.  If
 * rank 0 has no seat free, the rank starts all of that again a little later.
 *
 * The caller owns the connection until it has the parent's block; from then on
 * it is the reactor's, which listens for news.
 */
#include "lib/net/connector.h"
#include "lib/net/reactor.h"
#include "lib/net/fd_limit.h"
#include "lib/net/tree.h"
#include "lib/boot/ended.h"
#include "lib/boot/launcher.h"
#include "lib/boot/rendezvous.h"
#include "lib/boot/rendezvous_msg.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EXCUSE_TIME 3.0 /* s, to tell rank 0, which may come late, of a failure */
#define LOOK_EVERY 0.1  /* s, between two looks at the launcher */

struct rendezvous_join {
    struct coll__source source; /* first; fd -1: there is no connection */
    struct coll__boot *boot;
    struct coll__rendezvous_spec spec;
    struct tcp_words words;
    char where[COLL__ADDR_TEXT]; /* rank 0's address */
    int is_watched;              /* does the reactor watch the connection? */
    int is_told;                 /* both sides know that the job fails */
    struct coll__launcher_watch launcher;
    _Atomic(const char *) why; /* why the launcher has gone; NULL: it has not */
    struct coll__ended ended;  /* read as far as this */
    char root_ended[COLL__ENDED_TEXT]; /* how rank 0 has ended; "": it lives */
};

static void launcher_gone(struct coll__launcher_watch *watch, const char *why)
{
    struct rendezvous_join *join =
        (struct rendezvous_join *)((char *)watch -
                                   offsetof(struct rendezvous_join, launcher));

    atomic_store(&join->why, why);
}

/* Has the launcher gone, or has the group failed that was to grow? */
static int is_left(const struct rendezvous_join *join)
{
    char why[COLL__TEXT_MAX];

    return atomic_load(&join->why) || coll__boot_origin_failed(join->boot, why);
}

/* Is there no use in looking for rank 0?  For the thread that connects. */
static int is_over(void *arg)
{
    struct rendezvous_join *join = arg;
    char text[COLL__ENDED_TEXT];
    int rank;

    while (!join->root_ended[0] && coll__ended_next(&join->ended, &rank, text))
        if (!rank)
            memcpy(join->root_ended, text, sizeof(text));
    return is_left(join) || join->root_ended[0];
}

/* The group has failed that was to grow.  Rank 0 may not know yet: without a word it would
 * take this rank for dead. */
static int fail_with_origin(const struct rendezvous_join *join, int status,
                            const char *why)
{
    log_error("boot", COLL__ORIGIN_FAILED, why);
    if (join->source.fd >= 0)
        coll__rendezvous_put_error(join->source.fd, status, coll_last_error());
    return status;
}

/* The launcher has gone, so that no process would end this rank; or the group has failed
 * that was to grow; or rank 0 has ended. */
static int left_alone(const struct rendezvous_join *join)
{
    char why[COLL__TEXT_MAX];
    int status = coll__boot_origin_failed(join->boot, why);

    if (atomic_load(&join->why)) {
        log_error("boot", "%s", atomic_load(&join->why));
        return COLL_ERR_ABORTED;
    }
    if (status)
        return fail_with_origin(join, status, why);
    log_error("boot", "%s before rank %d reached it", join->root_ended,
              join->spec.rank);
    return COLL_ERR_BOOTSTRAP;
}

static struct coll__connector dial_of(const struct coll__rendezvous_spec *spec)
{
    return (struct coll__connector){
        .addrs = spec->addrs,
        .n_addrs = spec->n_addrs,
        .n_ports = spec->n_ports,
        .secret = spec->secret,
        .hello = {.kind = GATE_BOOT,
                  .from = (uint32_t)spec->rank,
                  .size = (uint32_t)spec->size,
                  .generation = spec->generation},
        .is_patient = !spec->is_brief,
        .whom = "rank 0",
    };
}

/* Log why rank 0 could not be reached. */
static int not_found(const struct coll__rendezvous_spec *spec, double timeout,
                     const struct coll__connector *connector, int fd)
{
    if (connector->is_silent)
        log_error("boot",
                  "rank 0 (%s) " COLL__SILENT_TEXT
                  "; is its address right, and "
                  "no firewall between?",
                  connector->why);
    else if (fd == COLL_ERR_TIMEOUT)
        log_error("boot",
                  "rank %d could not reach rank 0 within %.3g s (%s); %s%s",
                  spec->rank, timeout, connector->why,
                  connector->is_strange &&
                          connector->n_ports > 1 /* or a neighbour's */
                      ? "is rank 0 running? and "
                      : "",
                  connector->is_strange || spec->is_home
                      ? spec->remedy
                      : "is rank 0 running, and its address "
                        "reachable from here?");
    else if (fd == COLL_ERR_PEER)
        log_error("boot", "rank 0 rejected rank %d (%s)%s%s", spec->rank,
                  connector->why, connector->is_otherwise ? "" : "; ",
                  connector->is_otherwise ? "" : spec->remedy);
    else if (spec->is_brief)
        log_error("boot",
                  "rank 0 died before rank %d reached it, or does not wait "
                  "for it any more (%s)",
                  spec->rank, connector->why);
    else
        log_error("boot", "rank %d cannot reach rank 0 (%s)", spec->rank,
                  connector->why);
    return connector->is_silent || (fd == COLL_ERR_SYSTEM && spec->is_brief)
               ? COLL_ERR_PEER
               : COLL_ERR_BOOTSTRAP;
}

/* Connect to rank 0: the socket, or a status, logged. */
static int find_root(struct rendezvous_join *join, double deadline)
{
    struct coll__connector connector = dial_of(&join->spec);
    int fd;

    connector.is_over = is_over;
    connector.arg = join;
    fd = coll__connector(&connector, deadline);
    if (fd == COLL_ERR_ABORTED)
        return left_alone(join);
    return fd < 0 ? not_found(&join->spec, join->boot->timeout, &connector, fd)
                  : fd;
}

static void hang_up(struct rendezvous_join *join)
{
    if (join->source.fd >= 0)
        close(join->source.fd);
    join->source.fd = -1;
}

/* Wait for a message of this type: 0, or a status, logged.  Its type is another one only
 * if rank 0 sends this rank away. */
static int hear(struct rendezvous_join *join, enum tcp_type type, size_t len,
                double deadline)
{
    struct pollfd pfd = {.fd = join->source.fd, .events = POLLIN};
    char text[TCP_TEXT];
    int rc;

    while (!(rc = coll__rendezvous_read(pfd.fd, &join->words))) {
        double now = coll__now(), look = now + LOOK_EVERY;

        if (is_left(join))
            return left_alone(join);
        if (now < deadline) {
            coll__reactor_poll(&pfd, 1, look < deadline ? look : deadline);
            continue;
        }
        log_error("boot", "rank 0 did not answer in time while the job was "
                          "forming; is it alive?");
        return COLL_ERR_BOOTSTRAP;
    }
    if (rc < 0) {
        coll__rendezvous_lost(0, join->where, &join->words, text);
        log_error("boot", "%s", text);
        return COLL_ERR_PEER;
    }
    if (tcp_type(&join->words) == TCP_ERROR) {
        log_error("boot", "%s", (char *)join->words.body);
        return coll__rendezvous_fault(&join->words);
    }
    if (tcp_type(&join->words) == TCP_AGAIN &&
        tcp_len(&join->words) == sizeof(struct tcp_again))
        return COLL_OK;
    if (tcp_type(&join->words) == TCP_PARENT_GO && type == TCP_PARENT)
        type = TCP_PARENT_GO;
    if (tcp_type(&join->words) == type && tcp_len(&join->words) == len)
        return COLL_OK;
    log_error("boot",
              "rank 0 sent %zu bytes where %zu were due; do all ranks run the "
              "same program with the same libcoll?",
              tcp_len(&join->words), len);
    return COLL_ERR_BOOTSTRAP;
}

static int is_sent_away(const struct rendezvous_join *join)
{
    return tcp_type(&join->words) == TCP_AGAIN;
}

/* Wait as long as rank 0 has said. */
static void stay_away(struct rendezvous_join *join)
{
    struct tcp_again again;
    double until, now = coll__now();

    memcpy(&again, join->words.body, sizeof(again));
    again.ms = le32toh(again.ms) < 60000 ? le32toh(again.ms) : 60000;
    hang_up(join);
    for (until = now + again.ms * 1e-3; now < until && !is_left(join);
         now = coll__now())
        coll__reactor_poll(NULL, 0,
                           now + LOOK_EVERY < until ? now + LOOK_EVERY : until);
}

/* Be welcome there. */
static int come_in(struct rendezvous_join *join, double deadline)
{
    struct tcp_here here;
    int status;

    coll__host_id(here.host);
    coll__reactor_lock();
    coll__presence_self(here.presence);
    coll__reactor_unlock();
    do {
        if (join->source.fd < 0)
            join->source.fd = find_root(join, deadline);
        if (join->source.fd < 0)
            return join->source.fd;
        coll__net_peer_text(join->source.fd, join->where);
        coll__rendezvous_put(join->source.fd, TCP_HERE, &here, sizeof(here),
                             deadline);
        status = hear(join, TCP_WELCOME, sizeof(struct tcp_welcome),
                      deadline + TELL_TIME);
        if (!status && is_sent_away(join))
            stay_away(join);
    } while (!status && join->source.fd < 0);
    return status;
}

static void destroy(struct rendezvous_join *join)
{
    coll__reactor_lock();
    coll__launcher_unwatch(&join->launcher);
    coll__reactor_unlock();
    hang_up(join);
    coll__auth_wipe(join->spec.secret, sizeof(join->spec.secret));
    free(join);
}

/* Connect to rank 0 only to report an error; the rank has no connection.  With much time,
 * also wait until rank 0 is up. */
static void come_to_tell(const struct coll__rendezvous_spec *spec, int status,
                         const char *text, double time)
{
    struct coll__connector connector = dial_of(spec);
    int fd;

    connector.is_patient = time > TELL_TIME && !spec->is_brief;
    connector.whom = NULL;
    fd = coll__connector(&connector, coll__now() + time);
    if (fd < 0)
        return;
    coll__rendezvous_put_error(fd, status, text);
    close(fd);
}

void coll__rendezvous_join_excuse(const struct coll__rendezvous_spec *spec,
                                  int status)
{
    char text[TCP_TEXT];

    snprintf(text, sizeof(text), "rank %d could not join: %.380s", spec->rank,
             coll_last_error());
    come_to_tell(spec, status, text, EXCUSE_TIME);
}

int coll__rendezvous_join_lacks(const struct coll__rendezvous_spec *spec)
{
    int n_listening = coll__tree_n_children(spec->rank, spec->size) > 0;

    return coll__fds_lack(spec->rank, /* one more to rank 0 */
                          1 + n_listening +
                              coll__fds_in_tree(spec->rank, spec->size));
}

int coll__rendezvous_join_open(struct coll__boot *boot,
                               const struct coll__rendezvous_spec *spec)
{
    double deadline = coll__now() + boot->timeout;
    struct rendezvous_join *join = calloc(1, sizeof(*join));
    struct tcp_welcome welcome;
    int status;

    if (!join) {
        log_error("boot", "no memory for a connection to rank 0");
        return COLL_ERR_NOMEM;
    }
    join->boot = boot;
    join->spec = *spec;
    join->source.fd = -1;
    coll__ended_begin(&join->ended, spec->knows_ended);
    join->launcher.gone = launcher_gone;
    coll__reactor_lock();
    coll__launcher_watch(&join->launcher);
    coll__reactor_unlock();
    status = come_in(join, deadline);
    if (status) {
        destroy(join);
        return status;
    }
    memcpy(&welcome, join->words.body, sizeof(welcome));
    coll__auth_mac(spec->secret, "session", welcome.nonce,
                   sizeof(welcome.nonce), boot->secret);
    boot->is_one_host = welcome.is_one_host != 0;
    boot->state = join;
    return COLL_OK;
}

/* ---- while the tree is being connected -------------------------------------- */

static void news(struct rendezvous_join *join, int status, const char *text)
{
    struct coll__boot_news *to = &join->boot->news;

    join->is_told = 1;
    if (to->failed)
        to->failed(to->arg, status, text);
}

/* Lock held. */
static void stop_watching(struct rendezvous_join *join)
{
    if (join->is_watched)
        coll__reactor_remove(&join->source);
    join->is_watched = 0;
}

static void root_ready(struct coll__source *source, uint32_t events)
{
    struct rendezvous_join *join = (struct rendezvous_join *)source;
    int is_whole = coll__rendezvous_read(source->fd, &join->words);
    char text[TCP_TEXT];

    (void)events;
    if (!is_whole)
        return;
    stop_watching(join);
    if (is_whole < 0) {
        coll__rendezvous_lost(0, join->where, &join->words, text);
        news(join, COLL_ERR_PEER, text);
    } else if (tcp_type(&join->words) == TCP_ERROR)
        news(join, coll__rendezvous_fault(&join->words),
             (char *)join->words.body);
}

static void root_expired(struct coll__source *source) { (void)source; }

static void root_dropped(struct coll__source *source)
{
    struct rendezvous_join *join = (struct rendezvous_join *)source;

    join->is_watched = 0;
}

static int watch(struct rendezvous_join *join)
{
    int fd = join->source.fd, status;

    join->source = (struct coll__source){.fd = fd,
                                         .events = EPOLLIN,
                                         .ready = root_ready,
                                         .expired = root_expired,
                                         .dropped = root_dropped};
    coll__reactor_lock();
    status = coll__reactor_add(&join->source);
    join->is_watched = !status;
    coll__reactor_unlock();
    return status;
}

int coll__rendezvous_join_places(struct coll__boot *boot, const void *in,
                                 size_t len, void *parent)
{
    double deadline = coll__now() + boot->timeout;
    struct rendezvous_join *join = boot->state;
    int status = COLL_OK;

    do {
        if (join->source.fd < 0)
            status = come_in(join, deadline);
        if (status)
            return status;
        /* If rank 0 has ended, its last message can still be read. */
        coll__rendezvous_put(join->source.fd, TCP_BLOCK, in, len, deadline);
        status = hear(join, TCP_PARENT, len, deadline + TELL_TIME);
        if (!status && is_sent_away(join))
            stay_away(join);
    } while (!status && join->source.fd < 0);
    if (status)
        return status;
    memcpy(parent, join->words.body, len);
    if (tcp_type(&join->words) == TCP_PARENT)
        return watch(join);
    coll__rendezvous_put(join->source.fd, TCP_BYE, "", 0, deadline);
    hang_up(join);
    return COLL_OK;
}

void coll__rendezvous_join_tell(struct coll__boot *boot, int status,
                                const char *text)
{
    struct rendezvous_join *join = boot->state;
    int is_away;

    coll__reactor_lock(); /* the reactor may be calling back right now */
    is_away = join->source.fd < 0 && !join->is_told;
    if (join->source.fd >= 0 && !join->is_told)
        coll__rendezvous_put_error(join->source.fd, status, text);
    join->is_told = 1;
    coll__reactor_unlock();
    if (is_away)
        come_to_tell(&join->spec, status, text, TELL_TIME);
}

void coll__rendezvous_join_close(struct coll__boot *boot)
{
    struct rendezvous_join *join = boot->state;

    coll__reactor_lock();
    if (join->source.fd >= 0 && !join->is_told)
        coll__rendezvous_put(join->source.fd, TCP_BYE, "", 0,
                             coll__now() + TELL_TIME);
    stop_watching(join);
    coll__reactor_unlock();
    destroy(join);
}
