/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_root.c - rank 0 at the rendezvous: accept the ranks that prove the secret,
 * hand each its parent's block, and watch over the connected ones until the tree is up.
 *
 * Connections are accepted and served on the reactor's thread, under its lock.  The table
 * (rendezvous_table.h) decides what each rank is told.  The caller waits.
 */
#include "lib/net/listener.h"
#include "lib/net/reactor.h"
#include "lib/net/tree.h"
#include "lib/boot/ended.h"
#include "lib/boot/launcher.h"
#include "lib/boot/rendezvous.h"
#include "lib/boot/rendezvous_table.h"
#include "lib/boot/rendezvous_msg.h"
#include "lib/trace/log.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LOOK_EVERY 0.1 /* s, between two looks at which ranks have ended */
#define LATE_TIME 1.0 /* s, for ranks that come after the job has failed */

struct rendezvous_root {
    struct coll__gate gate; /* first */
    struct coll__boot *boot;
    struct rendezvous_table table;
    struct guest **guests; /* [size]: NULL: not connected */
    uint32_t *pids;        /* [size]; 0: has not connected yet */
    unsigned char (*blocks)[TCP_BLOCK_MAX]; /* [size] */
    size_t len;                             /* of each block; 0: not known */
    struct coll__ended ended;               /* its beginning */
    int has_gate, brief_fd;                 /* -1: the listener stays */
    struct tcp_welcome welcome;
    unsigned char host_id[COLL__HOST_BYTES];
    struct coll__launcher_watch launcher;
    pthread_cond_t changed;
    int status;           /* of the fault */
    char fault[TCP_TEXT]; /* why the job cannot form; "" while it can */
};

/* A rank that is connected. */
struct guest {
    struct coll__source source; /* first */
    struct rendezvous_root *host;
    int rank;
    char where[COLL__ADDR_TEXT];
    struct tcp_words words;
};

/* ---- faults --------------------------------------------------------------- */

/* The job cannot form: tell all connected ranks.  Only the first reason counts. */
static void fail(struct rendezvous_root *host, int status, const char *text)
{
    struct coll__boot_news *news = &host->boot->news;

    if (host->fault[0])
        return;
    snprintf(host->fault, sizeof(host->fault), "%s", text);
    host->status = status;
    for (int r = 1; r < host->table.size; r++)
        if (host->guests[r])
            coll__rendezvous_put_error(host->guests[r]->source.fd, status,
                                       text);
    if (news->failed)
        news->failed(news->arg, status, host->fault);
    pthread_cond_broadcast(&host->changed);
}

/* Fail the job: without the launcher, no process would end the ranks. */
static void launcher_gone(struct coll__launcher_watch *watch, const char *why)
{
    fail((struct rendezvous_root *)((char *)watch -
                                    offsetof(struct rendezvous_root, launcher)),
         COLL_ERR_ABORTED, why);
}

/* Check a rank that has connected; writes a sentence on what is wrong, or nothing. */
static void find_fault(const struct rendezvous_root *host, int fd,
                       const struct coll__hello *hello, char text[TCP_TEXT])
{
    int size = host->table.size;
    char who[COLL__ADDR_TEXT];

    coll__net_peer_text(fd, who);
    if (hello->size != (uint32_t)size)
        snprintf(text, TCP_TEXT,
                 "rank %u (pid %u at %s) "
                 "says the job has %u ranks, rank 0 says %d; give every rank "
                 "the same number",
                 hello->from, hello->pid, who, hello->size, size);
    else if (!hello->from || hello->from >= (uint32_t)size)
        snprintf(text, TCP_TEXT,
                 "a second process (pid %u "
                 "at %s) calls itself rank %u of %d; give every process a rank "
                 "of its own",
                 hello->pid, who, hello->from, size);
    else if (host->guests[hello->from] ||
             (host->table.marks[hello->from] & MARK_CAME &&
              host->pids[hello->from] != hello->pid))
        snprintf(text, TCP_TEXT,
                 "two processes came as rank "
                 "%u (the second is pid %u at %s); give every process a rank "
                 "of its own",
                 hello->from, hello->pid, who);
}

/* ---- guests ---------------------------------------------------------------- */

static void forget(struct guest *guest)
{
    struct rendezvous_root *host = guest->host;

    host->guests[guest->rank] = NULL;
    coll__rendezvous_table_leave(&host->table, guest->rank);
    host->gate.is_full = coll__rendezvous_table_is_full(&host->table);
    free(guest);
}

static void part_from(struct guest *guest)
{
    coll__reactor_remove(&guest->source);
    forget(guest);
}

static void guest_died(struct guest *guest)
{
    struct rendezvous_root *host = guest->host;
    char text[TCP_TEXT];

    coll__rendezvous_lost(guest->rank, guest->where, &guest->words, text);
    part_from(guest);
    fail(host, COLL_ERR_PEER, text);
}

/* Send the table's decision; a message is smaller than any socket's buffer. */
static void say(struct rendezvous_root *host, int rank, enum tcp_say what)
{
    struct guest *guest = host->guests[rank];
    const unsigned char *block =
        host->blocks[coll__tree_parent(rank, host->table.size)];
    struct tcp_again again = {
        htole32(coll__rendezvous_table_pause(&host->table))};
    double deadline = coll__now() + TELL_TIME;
    int fd = guest->source.fd;

    if (what == SAY_WELCOME)
        coll__rendezvous_put(fd, TCP_WELCOME, &host->welcome,
                             sizeof(host->welcome), deadline);
    else if (what == SAY_PARENT)
        coll__rendezvous_put(fd,
                             coll__rendezvous_table_may_stay(&host->table)
                                 ? TCP_PARENT
                                 : TCP_PARENT_GO,
                             block, host->len, deadline);
    else if (what == SAY_AGAIN)
        coll__rendezvous_put(fd, TCP_AGAIN, &again, sizeof(again), deadline);
    if (what == SAY_AGAIN)
        part_from(guest);
    else
        coll__rendezvous_table_said(&host->table, rank, what);
    if (!host->table.n_unserved)
        pthread_cond_broadcast(&host->changed);
}

static void got_here(struct guest *guest)
{
    struct rendezvous_root *host = guest->host;
    struct rendezvous_table *table = &host->table;
    int n_missing = table->n_missing, rank = guest->rank;
    struct tcp_here here;
    enum tcp_say what;

    memcpy(&here, guest->words.body, sizeof(here));
    if (memcmp(here.host, host->host_id, sizeof(host->host_id)) != 0 ||
        coll__presence_is_missing(here.presence))
        host->welcome.is_one_host = 0;
    what = coll__rendezvous_table_here(table, rank);
    if (!n_missing || table->n_missing) {
        say(host, rank, what);
        return;
    }
    for (int r = 1; r < table->size; r++) /* it was the last one */
        if (table->step[r] == STEP_HERE)
            say(host, r, SAY_WELCOME);
    pthread_cond_broadcast(&host->changed);
}

/* Take a rank's block, and hand it to children that wait for it. */
static void take_block(struct rendezvous_root *host, int rank,
                       const void *block)
{
    enum tcp_say what = coll__rendezvous_table_block(&host->table, rank);
    int size = host->table.size;

    memcpy(host->blocks[rank], block, host->len);
    if (rank)
        say(host, rank, what);
    for (int j = 0; j < coll__tree_n_children(rank, size); j++) {
        int child = coll__tree_child(rank, size, j);

        if (host->table.step[child] == STEP_WAIT)
            say(host, child, SAY_PARENT);
    }
}

static void got_block(struct guest *guest)
{
    struct rendezvous_root *host = guest->host;
    size_t len = tcp_len(&guest->words);
    char text[TCP_TEXT];

    if (!host->len)
        host->len = len;
    if (len && len <= TCP_BLOCK_MAX && len == host->len) {
        take_block(host, guest->rank, guest->words.body);
        return;
    }
    snprintf(text, sizeof(text),
             "rank %d sent %zu bytes where %zu were due; do all ranks run the "
             "same program with the same libcoll?",
             guest->rank, len, host->len);
    fail(host, COLL_ERR_BOOTSTRAP, text);
}

static void got(struct guest *guest)
{
    struct rendezvous_root *host = guest->host;
    const struct tcp_words *words = &guest->words;
    enum tcp_type type = tcp_type(words);
    enum tcp_step step = (enum tcp_step)host->table.step[guest->rank];

    if (type == TCP_ERROR && tcp_len(words))
        fail(host, coll__rendezvous_fault(words), (const char *)words->body);
    else if (type == TCP_BYE && step == STEP_IN)
        part_from(guest);
    else if (host->fault[0])
        return; /* it will read why */
    else if (type == TCP_HERE && step == STEP_COME &&
             tcp_len(words) == sizeof(struct tcp_here))
        got_here(guest);
    else if (type == TCP_BLOCK && step == STEP_BLOCK)
        got_block(guest);
    else
        guest_died(guest); /* it talks nonsense */
}

static void guest_ready(struct coll__source *source, uint32_t events)
{
    struct guest *guest = (struct guest *)source;
    int is_whole = coll__rendezvous_read(source->fd, &guest->words);

    (void)events;
    if (is_whole < 0)
        guest_died(guest);
    else if (is_whole)
        got(guest);
}

static void guest_expired(struct coll__source *source) { (void)source; }

/* In a forked child, where no caller waits. */
static void guest_dropped(struct coll__source *source)
{
    forget((struct guest *)source);
}

/* Give a connection its struct; 0, or a status, logged. */
static int seat(struct rendezvous_root *host, int fd,
                const struct coll__hello *hello)
{
    struct guest *guest = calloc(1, sizeof(*guest));
    int status;

    if (!guest) {
        log_error("boot", "no memory for rank %u", hello->from);
        return COLL_ERR_NOMEM;
    }
    *guest = (struct guest){.source = {.fd = fd,
                                       .events = EPOLLIN,
                                       .ready = guest_ready,
                                       .expired = guest_expired,
                                       .dropped = guest_dropped},
                            .host = host,
                            .rank = (int)hello->from};
    coll__net_peer_text(fd, guest->where);
    status = coll__reactor_add(&guest->source);
    if (status) {
        free(guest);
        return status;
    }
    host->guests[guest->rank] = guest;
    host->pids[guest->rank] = hello->pid;
    coll__rendezvous_table_come(&host->table, guest->rank);
    host->gate.is_full = coll__rendezvous_table_is_full(&host->table);
    return COLL_OK;
}

static void arrived(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello,
                    const unsigned char *session)
{
    struct rendezvous_root *host = (struct rendezvous_root *)gate;
    struct guest *before = hello->from < (uint32_t)host->table.size
                               ? host->guests[hello->from]
                               : NULL;
    char text[TCP_TEXT] = "";
    int status = COLL_ERR_BOOTSTRAP;

    (void)session; /* addresses are no secret */
    /* The rank had all it needs; it has come again to say that it cannot join. */
    if (before && host->table.step[hello->from] == STEP_IN &&
        host->pids[hello->from] == hello->pid)
        part_from(before);
    if (!host->fault[0])
        find_fault(host, fd, hello, text);
    if (!host->fault[0] && !text[0]) {
        status = seat(host, fd, hello);
        if (!status)
            return;
        snprintf(text, sizeof(text), "%s", coll_last_error());
    }
    fail(host, status, text); /* unless it has */
    coll__rendezvous_put_error(fd, host->status, host->fault);
    close(fd);
    if (hello->from < (uint32_t)host->table.size)
        host->pids[hello->from] = hello->pid;
    pthread_cond_broadcast(&host->changed);
}

/* ---- the caller's side ----------------------------------------------------- */

/* Go on to the next rank that has ended, as collrun tells: 1, and the beginning of a
 * sentence; or 0. */
static int next_ended(const struct rendezvous_root *host,
                      struct coll__ended *ended, int *rank,
                      char who[COLL__ENDED_TEXT])
{
    const struct coll__boot_origin *origin = &host->boot->origin;

    if (!origin->gone)
        return coll__ended_next(ended, rank, who);
    if (!origin->gone(origin->arg, rank))
        return 0;
    snprintf(who, COLL__ENDED_TEXT, "rank %d, a newcomer, has gone", *rank);
    return 1;
}

/* Fail the job if a rank has ended that is still needed; lock held.  If the rank has a
 * connection, that tells more. */
static void look_for_ended(struct rendezvous_root *host,
                           struct coll__ended *ended)
{
    const struct rendezvous_table *table = &host->table;
    char who[COLL__ENDED_TEXT], text[TCP_TEXT];
    int r;

    while (next_ended(host, ended, &r, who)) {
        if (r < 1 || r >= table->size || table->marks[r] & MARK_SERVED ||
            table->step[r] != STEP_AWAY)
            continue;
        table->marks[r] |= MARK_ENDED;
        snprintf(text, sizeof(text), "%s %s", who,
                 table->marks[r] & MARK_CAME
                     ? "while the job was forming; see its own output"
                 : host->boot->origin.gone
                     ? "before it joined; see its own output"
                     : "before it joined; does every rank call "
                       "coll_comm_create_env()?");
        fail(host, COLL_ERR_BOOTSTRAP, text); /* unless it has */
    }
}

/* Fail if the group has failed that was to grow; returns whether it has; lock held. */
static int look_at_origin(struct rendezvous_root *host)
{
    char why[COLL__TEXT_MAX], text[TCP_TEXT];
    int status = coll__boot_origin_failed(host->boot, why);

    if (status) {
        coll__print(text, sizeof(text), COLL__ORIGIN_FAILED, why);
        fail(host, status, text);
    }
    return status != COLL_OK;
}

/* Wait for a change; 0, or COLL_ERR_TIMEOUT at the deadline; lock held. */
static int await_change(struct rendezvous_root *host, double deadline)
{
    double look = coll__now() + LOOK_EVERY;

    if (look >= deadline || (host->ended.fd < 0 && !host->boot->origin.failed))
        return coll__reactor_wait(&host->changed, deadline);
    coll__reactor_wait(&host->changed, look);
    return COLL_OK;
}

/* Wait until *n_left is 0; lock held.  A status, logged. */
static int wait_for(struct rendezvous_root *host, const int *n_left,
                    unsigned mark, double deadline)
{
    char late[128], text[TCP_TEXT];
    struct coll__ended ended = host->ended;

    while (*n_left && !host->fault[0] && !look_at_origin(host) &&
           !await_change(host, deadline))
        look_for_ended(host, &ended);
    if (!*n_left && !host->fault[0])
        return COLL_OK;
    coll__rendezvous_table_name(&host->table, mark, late, sizeof(late));
    if (mark == MARK_CAME)
        coll__print(text, sizeof(text),
                    "%s did not join within %.3g s; "
                    "were all %d ranks started, and can they reach rank 0?",
                    late, host->boot->timeout, host->table.size);
    else
        coll__print(text, sizeof(text),
                    "%s did not answer in time while the job was forming; is "
                    "it alive?",
                    late);
    fail(host, COLL_ERR_BOOTSTRAP, text); /* unless it has */
    log_error("boot", "%s", host->fault);
    return host->status;
}

/* Is there a rank that has never connected, and still may? */
static int is_any_unseen(const struct rendezvous_root *host)
{
    for (int r = 1; r < host->table.size; r++)
        if (!host->pids[r] && !(host->table.marks[r] & MARK_ENDED))
            return 1;
    return 0;
}

/* The job cannot form: wait a moment for ranks that are still to come, so that they hear
 * why; lock held.  A rank that has died in a group that was to grow does not come. */
static void await_late(struct rendezvous_root *host, double deadline)
{
    double until = min_double(coll__now() + LATE_TIME, deadline);
    struct coll__ended ended = host->ended;

    while (host->fault[0] && is_any_unseen(host) && !look_at_origin(host) &&
           !await_change(host, until))
        look_for_ended(host, &ended);
}

/* Stop listening: no more ranks are to come; lock held. */
static void shut(struct rendezvous_root *host)
{
    if (host->has_gate)
        coll__gate_remove(&host->gate);
    host->has_gate = 0;
    if (host->brief_fd >= 0)
        coll__listener_close_spare(host->brief_fd);
    host->brief_fd = -1;
}

static void destroy(struct rendezvous_root *host)
{
    coll__reactor_lock();
    shut(host);
    coll__launcher_unwatch(&host->launcher);
    for (int r = 1; host->guests && r < host->table.size; r++) {
        if (!host->guests[r])
            continue;
        if (!host->fault[0])
            coll__rendezvous_put(host->guests[r]->source.fd, TCP_BYE, "", 0,
                                 coll__now() + TELL_TIME);
        part_from(host->guests[r]);
    }
    coll__reactor_unlock();
    coll__rendezvous_table_fini(&host->table);
    pthread_cond_destroy(&host->changed);
    coll__auth_wipe(host->gate.secret, COLL__SECRET_BYTES);
    free(host->guests);
    free(host->pids);
    free(host->blocks);
    free(host);
}

static struct rendezvous_root *
new_host(struct coll__boot *boot, const struct coll__rendezvous_spec *spec)
{
    struct rendezvous_root *host = calloc(1, sizeof(*host));
    size_t n = (size_t)spec->size;

    if (!host)
        return NULL;
    coll__reactor_cond_init(&host->changed);
    host->boot = boot;
    host->brief_fd = -1;
    coll__ended_begin(&host->ended, spec->knows_ended);
    host->guests = calloc(n, sizeof(struct guest *));
    host->pids = calloc(n, sizeof(*host->pids));
    host->blocks = calloc(n, sizeof(*host->blocks));
    if (coll__rendezvous_table_init(&host->table, spec->size,
                                    coll__rendezvous_n_seats(spec)) ||
        !host->guests || !host->pids || !host->blocks) {
        destroy(host);
        return NULL;
    }
    host->welcome.is_one_host = htole32(1);
    coll__auth_random(host->welcome.nonce, sizeof(host->welcome.nonce));
    coll__host_id(host->host_id);
    host->gate.kind = GATE_BOOT;
    host->gate.generation = spec->generation;
    host->gate.arrived = arrived;
    host->launcher.gone = launcher_gone;
    memcpy(host->gate.secret, spec->secret, COLL__SECRET_BYTES);
    return host;
}

static int receive_all(struct rendezvous_root *host,
                       const struct coll__rendezvous_spec *spec)
{
    double deadline = coll__now() + host->boot->timeout;
    int status, is_poor = coll__rendezvous_lacks_seats(spec);

    coll__reactor_lock();
    if (is_poor) /* all who come are told */
        fail(host, COLL_ERR_SYSTEM, coll_last_error());
    coll__launcher_watch(&host->launcher);
    coll__gate_add(&host->gate);
    host->has_gate = 1;
    coll__reactor_unlock();
    status = coll__rendezvous_listen(spec);
    if (status)
        return status;
    coll__reactor_lock();
    if (spec->is_brief)
        host->brief_fd = spec->listen_fd;
    status = wait_for(host, &host->table.n_missing, MARK_CAME, deadline);
    await_late(host, deadline);
    coll__reactor_unlock();
    return status;
}

int coll__rendezvous_root_open(struct coll__boot *boot,
                               const struct coll__rendezvous_spec *spec)
{
    struct rendezvous_root *host = new_host(boot, spec);
    int status;

    if (!host) {
        log_error("boot", "no memory for a job of %d ranks", spec->size);
        if (spec->listen_fd >= 0)
            close(spec->listen_fd);
        return COLL_ERR_NOMEM;
    }
    status = receive_all(host, spec);
    if (status) {
        destroy(host);
        return status;
    }
    coll__auth_mac(spec->secret, "session", host->welcome.nonce,
                   sizeof(host->welcome.nonce), boot->secret);
    boot->is_one_host = host->welcome.is_one_host != 0;
    boot->state = host;
    return COLL_OK;
}

int coll__rendezvous_root_places(struct coll__boot *boot, const void *in,
                                 size_t len)
{
    double deadline = coll__now() + boot->timeout;
    struct rendezvous_root *host = boot->state;
    int status = COLL_OK;

    coll__reactor_lock();
    if (host->len && host->len != len && !host->fault[0])
        fail(host, COLL_ERR_BOOTSTRAP,
             "rank 0 exchanges another number of bytes; do all ranks run the "
             "same program with the same libcoll?");
    host->len = len;
    if (!host->fault[0])
        take_block(host, 0, in);
    status = wait_for(host, &host->table.n_unserved, MARK_SERVED, deadline);
    coll__reactor_unlock();
    return status;
}

void coll__rendezvous_root_tell(struct coll__boot *boot, int status,
                                const char *text)
{
    coll__reactor_lock();
    fail(boot->state, status, text);
    coll__reactor_unlock();
}

void coll__rendezvous_root_close(struct coll__boot *boot)
{
    destroy(boot->state);
}
