/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_agents.c - start a collrun on another host.
 *
 * An agent is `ssh HOST COMMAND`, or what --rsh-agent names in place of ssh.  The command
 * goes to the folder of this process and gets its variables COLL_*, UCX_* and PATH, and
 * those of -x.  The job's secret goes by the agent's stdin, as anybody may read a
 * command line.
 */
#include "tools/collrun_agents.h"
#include "tools/collrun.h"
#include "tools/collrun_endpoint.h"
#include "tools/collrun_tree.h"

#include "lib/net/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct agent {
    pid_t pid;
    int has_ended, how;
    struct stream out[2];
};

int agents_draw_secret(void)
{
    const char *secret = getenv("COLL_JOB_SECRET");
    unsigned char bytes[16];
    char text[2 * sizeof(bytes) + 1];

    if (secret && *secret)
        return 0;
    coll__auth_random(bytes, sizeof(bytes));
    coll__auth_hex(bytes, sizeof(bytes), text);
    return setenv("COLL_JOB_SECRET", text, 1);
}

/* Which of this host's addresses do packets to that host have?  Nothing is sent. */
const char *agents_address_for(const char *host)
{
    static char text[NI_MAXHOST];
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;
    struct sockaddr_storage at;
    socklen_t len = sizeof(at);
    int fd = -1, is_known = 0;

    if (!getaddrinfo(host, "9", &hints, &list))
        fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, list->ai_addr, list->ai_addrlen) &&
        !getsockname(fd, (struct sockaddr *)&at, &len))
        is_known = !getnameinfo((struct sockaddr *)&at, len, text, sizeof(text),
                                NULL, 0, NI_NUMERICHOST);
    if (list)
        freeaddrinfo(list);
    if (fd >= 0)
        close(fd);
    if (!is_known)
        gethostname(text, sizeof(text));
    return text;
}

int agents_is_here(const char *host)
{
    char name[HOST_NAME_MAX + 1] = "";

    gethostname(name, sizeof(name) - 1);
    return !strcmp(host, name) || endpoint_is_here(host, 0);
}

/* ---- the command ------------------------------------------------------------- */

/* Write a word in quotes for the shell there. */
static void quote(FILE *to, const char *word)
{
    fputs(" '", to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[2]){*word, '\0'}, to);
    fputc('\'', to);
}

static void write_variables(FILE *to, const struct options *options)
{
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "COLL_JOB_SECRET", 15) != 0 &&
            variables_go_along(options, *e)) {
            fputs("; export", to);
            quote(to, *e);
        }
}

/* Write the command line of the collrun there. */
static void write_collrun(FILE *to, const struct errand *errand)
{
    const struct options *o = errand->options;
    const char *address = agents_address_for(errand->host);
    char self[PATH_MAX] = "collrun", endpoint[NI_MAXHOST + 16];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len > 0)
        self[len] = '\0';
    snprintf(endpoint, sizeof(endpoint),
             strchr(address, ':') ? "[%s]:%d" : "%s:%d", address, errand->port);
    fputs("; exec", to);
    quote(to, self);
    fprintf(to, " --is-far --nnodes=%d --node-rank=%d --nproc-per-node=%d",
            errand->node + 1, errand->node, errand->n);
    fputs(" --rdzv-endpoint", to);
    quote(to, endpoint);
    fputs(" --rdzv-id", to);
    quote(to, errand->run_id);
    fprintf(to, "%s%s", o->is_bound ? " --bind=core" : "",
            o->is_plain ? " --no-prefix" : "");
    if (o->output_folder) {
        fputs(" --output-filename", to);
        quote(to, o->output_folder);
    }
    for (char **word = o->command; *word; word++)
        quote(to, *word);
    fputs(" < /dev/null", to);
}

/* Return the command for a shell of any kind; free() it.  NULL: out of memory. */
static char *write_command(const struct errand *errand)
{
    char *script = NULL, *command = NULL, folder[PATH_MAX] = "/";
    size_t len;
    FILE *to = open_memstream(&script, &len);

    if (!to)
        return NULL;
    if (!getcwd(folder, sizeof(folder)))
        complain("this folder has no name: %s", strerror(errno));
    fputs("IFS= read -r COLL_JOB_SECRET; export COLL_JOB_SECRET; cd", to);
    quote(to, folder);
    fputs(" || exit 1", to);
    write_variables(to, errand->options);
    write_collrun(to, errand);
    if (fclose(to) || !script || !(to = open_memstream(&command, &len))) {
        free(script);
        return NULL;
    }
    fputs("exec /bin/sh -c", to);
    quote(to, script);
    free(script);
    return fclose(to) ? NULL : command;
}

/* ---- the process ------------------------------------------------------------- */

/* In the new process.  It has no terminal, so that a ^C there, which this collrun passes
 * on to all hosts, does not end the connection that their last output comes by. */
static void become(const struct errand *errand, char *command,
                   const int ends[3])
{
    const char *agent = errand->options->rsh_agent;
    char *text = strdup(agent ? agent : "ssh"), *rest, *words[64];
    int n = 0;

    for (char *w = text ? strtok_r(text, " ", &rest) : NULL; w && n < 60;
         w = strtok_r(NULL, " ", &rest))
        words[n++] = w;
    words[n++] = (char *)errand->host; /* exec takes it so, unchanged */
    words[n++] = command;
    words[n] = NULL;
    for (int i = 0; i < 3; i++)
        dup2(ends[i], i);
    tree_leave();
    unsetenv("COLL_JOB_SECRET");
    execvp(words[0], words);
    fprintf(stderr, "collrun: cannot run %s: %s; see --rsh-agent\n", words[0],
            strerror(errno));
    _exit(EXIT_NOT_FOUND);
}

/* Make pipes: in[] for its stdin, the others for what it prints. */
static int make_pipes(int in[2], int out[2][2])
{
    return pipe2(in, O_CLOEXEC) || pipe2(out[0], O_CLOEXEC) ||
                   pipe2(out[1], O_CLOEXEC)
               ? -1
               : 0;
}

static int spawn(struct agent *agent, const struct errand *errand,
                 char *command)
{
    const char *secret = getenv("COLL_JOB_SECRET");
    int in[2], out[2][2];

    if (make_pipes(in, out))
        return -1;
    dprintf(in[1], "%s\n", secret ? secret : ""); /* the pipe holds it */
    close(in[1]);
    agent->pid = fork();
    if (!agent->pid)
        become(errand, command, (int[3]){in[0], out[0][1], out[1][1]});
    if (agent->pid > 0)
        tree_spare(agent->pid);
    close(in[0]);
    for (int i = 0; i < 2; i++) {
        close(out[i][1]);
        fcntl(out[i][0], F_SETFL, O_NONBLOCK);
        agent->out[i] = (struct stream){.fd = out[i][0],
                                        .rank = STREAM_OF_OTHERS,
                                        .copy = -1,
                                        .target = STDOUT_FILENO + i};
    }
    return agent->pid < 0 ? -1 : 0;
}

struct agent *agent_start(const struct errand *errand)
{
    struct agent *agent = calloc(1, sizeof(*agent));
    char *command = agent ? write_command(errand) : NULL;

    if (command && !spawn(agent, errand, command)) {
        free(command);
        return agent;
    }
    complain("cannot start a collrun on %s: %s", errand->host, strerror(errno));
    free(command);
    free(agent);
    return NULL;
}

void agent_fds(const struct agent *agent, struct pollfd *fds)
{
    for (int i = 0; i < 2; i++)
        fds[i] = (struct pollfd){.fd = agent->out[i].fd, .events = POLLIN};
}

int agent_pump(struct agent *agent)
{
    int rc = 0;

    for (int i = 0; i < 2; i++)
        if (agent->out[i].fd >= 0 && stream_pump(&agent->out[i]))
            rc = -1;
    return rc;
}

int agent_take_end(struct agent *agent, pid_t pid, int how)
{
    if (pid != agent->pid || agent->has_ended)
        return 0;
    agent->has_ended = 1;
    agent->how = how;
    return 1;
}

int agent_has_ended(const struct agent *agent, int *how)
{
    *how = agent->how;
    return agent->has_ended;
}

void agent_close(struct agent *agent, double deadline)
{
    struct pollfd fds[2];
    double left;

    if (!agent)
        return;
    for (agent_fds(agent, fds); fds[0].fd >= 0 || fds[1].fd >= 0;
         agent_fds(agent, fds)) {
        left = deadline - now();
        if (left <= 0 || poll(fds, 2, (int)(left * 1000) + 1) <= 0)
            break;
        agent_pump(agent);
    }
    if (!agent->has_ended) {
        kill(agent->pid, SIGKILL);
        tree_reap(agent->pid, NULL, 0);
    }
    for (int i = 0; i < 2; i++)
        stream_end(&agent->out[i]);
    free(agent);
}
