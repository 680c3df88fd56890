/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi.c - ranks that a PMI launcher started: hydra (MPICH, Intel MPI), srun
 * --mpi=pmi2.  Lines of text go to the launcher over the descriptor PMI_FD: the
 * first version of the protocol, which all of them speak.
 *
 * Servers are slow, and some accept no line above 1,024 bytes.  So only rank 0's address
 * and a secret go through them, as a unique id; with it the ranks meet as in
 * coll_comm_create().
 *
 * The connection stays open from the first group to the process's exit.  A program that
 * has started MPI uses the connection itself, so it cannot be used here.
 *
 * Source: the PMI-1 wire protocol as MPICH's simple_pmi client has it.
 */
#include "lib/boot/list.h"
#include "lib/boot/rendezvous.h"
#include "lib/boot/launcher_env.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE 1024 /* bytes of a line, including its newline */
#define NAME 256  /* bytes of the key space's name */
#define WHY 512

static struct {
    int fd, is_open;
    unsigned generation;    /* of the process that has opened it */
    char space[NAME];       /* the key space's name */
    unsigned n_groups;      /* groups that met; the same on every rank */
    char line[LINE];        /* the line being read */
    size_t n_line, n_taken; /* bytes read; bytes of them in earlier lines */
} pmi = {.fd = -1};

static int detect(void)
{
    static const char *const needed[] = {"PMI_RANK", "PMI_SIZE", NULL};

    return coll__launcher_env_has_all(
        "PMI_FD", needed,
        "start the ranks by mpiexec or srun --mpi=pmi2, "
        "or unset PMI_FD");
}

/* ---- lines --------------------------------------------------------------- */

static int broken(const char *what)
{
    log_error("boot",
              "the launcher's PMI server %s; is it MPICH's or Intel's mpiexec, "
              "or srun --mpi=pmi2, and has the job not ended?",
              what);
    return COLL_ERR_BOOTSTRAP;
}

/* Write without SIGPIPE, which a socket with a closed other end raises. */
static ssize_t write_some(const char *text, size_t len)
{
    ssize_t n = send(pmi.fd, text, len, MSG_NOSIGNAL);

    return n < 0 && errno == ENOTSOCK ? write(pmi.fd, text, len) : n;
}

static int write_line(const char *line)
{
    size_t len = strlen(line);

    for (size_t at = 0; at < len;) {
        ssize_t n = write_some(line + at, len - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return broken(errno == EPIPE ? "has closed the connection, as it "
                                           "does when the first program of a "
                                           "script has ended"
                                         : "takes no more words");
        at += (size_t)n;
    }
    return COLL_OK;
}

/* Read more bytes before the deadline: COLL_OK, or a status, logged. */
static int read_more(double deadline)
{
    struct pollfd file = {.fd = pmi.fd, .events = POLLIN};
    double left = deadline - coll__now();
    ssize_t n;

    if (pmi.n_line == sizeof(pmi.line))
        return broken("says more than a line holds");
    if (left <= 0 ||
        !poll(&file, 1, left > 3600 ? 3600000 : (int)(left * 1000) + 1)) {
        log_error("boot", "not every rank came to the PMI server's barrier in "
                          "time; did one end early, or never call "
                          "coll_comm_create_env()?");
        return COLL_ERR_BOOTSTRAP;
    }
    n = read(pmi.fd, pmi.line + pmi.n_line, sizeof(pmi.line) - pmi.n_line);
    if (n > 0)
        pmi.n_line += (size_t)n;
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN))
               ? COLL_OK
               : broken("has gone");
}

/* Read a line, which is valid until the next call; a NUL replaces its newline. */
static int read_line(double deadline, char **line)
{
    char *end;
    int status = COLL_OK;

    pmi.n_line -= pmi.n_taken;
    memmove(pmi.line, pmi.line + pmi.n_taken, pmi.n_line);
    pmi.n_taken = 0;
    while (!status && !(end = memchr(pmi.line, '\n', pmi.n_line)))
        status = read_more(deadline);
    if (status)
        return status;
    *end = '\0';
    pmi.n_taken = (size_t)(end - pmi.line) + 1;
    *line = pmi.line;
    return COLL_OK;
}

/* Copy the value of "key=" in a line, up to a space; 0 if it is missing or too
 * long. */
static int find(const char *line, const char *key, char *value, size_t len)
{
    size_t n = strlen(key);

    for (const char *at = line; (at = strstr(at, key)); at += n) {
        size_t n_value = strcspn(at + n + 1, " ");

        if ((at > line && at[-1] != ' ') || at[n] != '=')
            continue;
        if (n_value >= len)
            return 0;
        memcpy(value, at + n + 1, n_value);
        value[n_value] = '\0';
        return 1;
    }
    return 0;
}

/* Send a request and read its answer; an error unless the answer reports success. */
static int ask(const char *request, const char *answer, double deadline,
               char **line)
{
    char name[64], rc[16];
    int status = write_line(request);

    if (!status)
        status = read_line(deadline, line);
    if (status)
        return status;
    if (!find(*line, "cmd", name, sizeof(name)) || strcmp(name, answer) != 0 ||
        (find(*line, "rc", rc, sizeof(rc)) && strcmp(rc, "0") != 0)) {
        log_error("boot", "the PMI server answered '%.200s' to '%.*s'", *line,
                  (int)strcspn(request, "\n"), request);
        return COLL_ERR_BOOTSTRAP;
    }
    return COLL_OK;
}

/* ---- open and close ------------------------------------------------------ */

/* MPI would read from the same descriptor. */
static int is_taken(void)
{
    int (*initialized)(int *), is_started = 0;

    *(void **)&initialized = dlsym(RTLD_DEFAULT, "MPI_Initialized");
    if (!initialized || initialized(&is_started) || !is_started)
        return 0;
    log_error("boot",
              "this program has started MPI, whose library talks to the PMI "
              "server; have rank 0 call coll_get_unique_id(), hand it on by "
              "MPI_Bcast(), and call coll_comm_create()");
    return 1;
}

static void leave(void)
{
    char *line;

    if (!coll__is_inherited(pmi.generation))
        ask("cmd=finalize\n", "finalize_ack", coll__now() + 5, &line);
}

static int begin(double deadline)
{
    char *line;
    int status;

    if (pmi.is_open)
        return COLL_OK;
    pmi.fd = atoi(coll__launcher_env("PMI_FD"));
    pmi.generation = coll__generation_now();
    if (is_taken())
        return COLL_ERR_BOOTSTRAP;
    status = ask("cmd=init pmi_version=1 pmi_subversion=1\n",
                 "response_to_init", deadline, &line);
    if (!status)
        status = ask("cmd=get_my_kvsname\n", "my_kvsname", deadline, &line);
    if (!status && !find(line, "kvsname", pmi.space, sizeof(pmi.space)))
        status = broken("has no space for keys");
    if (status)
        return status;
    pmi.is_open = 1;
    atexit(leave);
    return COLL_OK;
}

/* ---- meeting ------------------------------------------------------------- */

/* Rank 0: put the unique id into the server, or that there is none. */
static int tell_id(const char *key, struct coll_unique_id *id, double deadline)
{
    char line[LINE], text[2 * COLL_UNIQUE_ID_BYTES + 1] = "none", *answer;
    int status = coll_get_unique_id(id), rc;

    if (!status)
        coll__auth_hex(id->bytes, sizeof(id->bytes), text);
    snprintf(line, sizeof(line), "cmd=put kvsname=%s key=%s value=%s\n",
             pmi.space, key, text);
    rc = ask(line, "put_result", deadline, &answer);
    coll__auth_wipe(line, sizeof(line));
    coll__auth_wipe(text, sizeof(text));
    return status ? status : rc;
}

static int hear_id(const char *key, struct coll_unique_id *id, double deadline)
{
    char request[LINE], text[2 * COLL_UNIQUE_ID_BYTES + 1], *line;
    int status;

    snprintf(request, sizeof(request), "cmd=get kvsname=%s key=%s\n", pmi.space,
             key);
    status = ask(request, "get_result", deadline, &line);
    if (status)
        return status;
    if (find(line, "value", text, sizeof(text)) &&
        !coll__auth_unhex(text, id->bytes, sizeof(id->bytes)))
        return COLL_OK;
    log_error("boot", "rank 0 could not listen for the others; see its own "
                      "messages");
    return COLL_ERR_BOOTSTRAP;
}

/* All ranks enter the barrier, even if rank 0 has failed before. */
static int share_id(int rank, struct coll_unique_id *id, double timeout)
{
    double deadline = coll__now() + timeout;
    char key[32], *line, why[WHY] = "";
    int status = begin(deadline), rc = COLL_OK;

    if (status)
        return status;
    snprintf(key, sizeof(key), "coll.%u", pmi.n_groups++);
    if (!rank)
        rc = tell_id(key, id, deadline);
    if (rc)
        snprintf(why, sizeof(why), "%s", coll_last_error());
    status = ask("cmd=barrier_in\n", "barrier_out", deadline, &line);
    if (!status && rank)
        status = hear_id(key, id, deadline);
    if (rc)
        coll__log_set_error(why); /* before what came of that */
    return rc ? rc : status;
}

static int open_pmi(struct coll__boot *boot)
{
    struct coll_unique_id id = {{0}};
    int rank = -1, size,
        status = coll__launcher_env_place("PMI_RANK", "PMI_SIZE", &rank, &size);

    if (!status)
        status = share_id(rank, &id, boot->timeout);
    if (!status)
        status = coll__boot_open_id(boot, &id, size, rank);
    if (status && !rank) /* the other ranks may not have got the id */
        coll__boot_free_id(&id);
    boot->ops = &coll__boot_pmi;
    coll__auth_wipe(&id, sizeof(id));
    return status;
}

const struct coll__boot_ops coll__boot_pmi = {
    .name = "pmi",
    .what = "PMI_FD, PMI_RANK and PMI_SIZE, as mpiexec of MPICH and Intel MPI "
            "and srun --mpi=pmi2 set them",
    .given = "PMI_RANK",
    .identity = {"PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMI_FD", NULL},
    .detect = detect,
    .open = open_pmi,
    .places = coll__rendezvous_places,
    .tell = coll__rendezvous_tell,
    .close = coll__rendezvous_close,
};
