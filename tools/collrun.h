/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun.h - what the parts of collrun share.
 *
 * collrun has one thread; every error is one line on stderr that begins with
 * "collrun: ".
 */
#ifndef COLL_TOOLS_COLLRUN_H
#define COLL_TOOLS_COLLRUN_H

#include <string.h>
#include <sys/types.h>

#define EXIT_USAGE 2
#define EXIT_LATE 124       /* as timeout(1) */
#define EXIT_CANNOT_RUN 126 /* as the shell */
#define EXIT_NOT_FOUND 127

#define MAX_VARIABLES 256

struct options {
    int n;             /* ranks; 0 before it is known */
    int n_nodes;       /* hosts; 0: all that are named */
    int per_node;      /* ranks on each; 0: as the host list says */
    int is_plain;      /* no prefix */
    int is_bound;      /* a core for each rank */
    int max_restarts;
    int min_np,
        max_np; /* ranks that may be left, and may be; 0: all are needed */
    double timeout;    /* s; 0 for none */
    const char *run_id; /* from the user, or NULL */
    /* The meeting place of collruns that were started separately on several hosts.
     * endpoint_host is NULL if there is only this collrun. */
    char endpoint[256]; /* --rdzv-endpoint; its parts: */
    const char *endpoint_host;
    int endpoint_port;
    int node_rank;           /* from the user, or -1 */
    const char *master_addr; /* the endpoint in two parts, or NULL */
    int master_port;
    const char *hosts; /* "h1:4,h2:4" or NULL */
    const char *hostfile;
    const char *include, *exclude; /* hosts and slots, "h1@h2:0,2" or NULL */
    const char *output_folder;     /* for copies of the ranks' output, or NULL */
    /* not 0: srun or mpirun has started this collrun for one of this many ranks */
    int is_within;
    const char *slots; /* the hosts' slots, if is_within (hosts_write_slots()) */
    int is_far;        /* one of several collruns whose lines come together */
    struct fleet
        *fleet; /* the other hosts, if collrun itself reaches them; or NULL */
    const char *rsh_agent;        /* a command, or NULL for ssh */
    const char *discovery_script; /* or NULL */
    const char *scaling, *csv; /* "1,2,4" or NULL; the table's file */
    const char *models;        /* a table for each, "cnn,net"; or NULL */
    int n_rounds;              /* of scaling; 0: one */
    const char *variables[MAX_VARIABLES]; /* names, for other hosts' ranks */
    int n_variables;
    char **command;    /* argv of the program, NULL at its end */
    enum { ONLY_NOTHING, ONLY_HELP, ONLY_CHECK } only; /* ONLY_HELP: it is done */
};

/* Read the command line; 0, or the exit status after an error message. */
int options_parse(struct options *options, int argc, char **argv);

/* s, of CLOCK_MONOTONIC. */
double now(void);

/* Print "collrun: ..." on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Run the program with several numbers of ranks and print a table; the exit
 * status. */
int scaling_run(const struct options *options);

/* Run the ranks on this machine; the exit status. */
int job_run(const struct options *options);

/* Note variables for the ranks: VAR or VAR=VALUE, or the lines of a file.  Each returns
 * 0, or -1 after an error message. */
int variables_take(struct options *options, const char *text);
int variables_read(struct options *options, const char *path);

/* Do ranks on other hosts get this variable?  `variable` is NAME=VALUE. */
int variables_go_along(const struct options *options, const char *variable);

/* Hand over to srun or mpirun; returns only an exit status for failure. */
int hosts_run(const struct options *options);

/* Skip the byte order mark with which Windows editors begin a file. */
static inline char *skip_byte_order_mark(char *line)
{
    return line + (strncmp(line, "\xEF\xBB\xBF", 3) ? 0 : 3);
}

/* Print what this build can do. */
void check_build(void);

/* Bind the calling process to the rank's core, if the system can. */
void bind_to_core(int rank);

/* ---- output: lines of the ranks, with "[rank] " once two have spoken ----- */

/* One of the two streams of one rank. */
struct stream {
    int fd;           /* the pipe's end, or -1 when it has ended */
    int rank; /* or STREAM_OF_OTHERS: lines of other hosts' ranks, as they come */
    int target;       /* STDOUT_FILENO or STDERR_FILENO */
    int copy;         /* a file that gets a copy, or -1 */
    char *held; /* the beginning of an unfinished line; grows */
    size_t n_held, size; /* bytes in `held`, and allocated for it */
    int is_open; /* the line's beginning is already written */
};

#define STREAM_OF_OTHERS (-2)

/* Begin a job with n ranks on this machine; `first` is the lowest. */
void output_init(const struct options *options, int first, int n);

/* Has a write of ours failed?  Nobody may read us any more. */
int output_is_lost(void);

/* Return the exit status that the output demands: 0 if all was written, the status of
 * SIGPIPE if the reader has gone, else 1 after an error message. */
int output_status(void);

/* Read the available bytes and pass on whole lines; -1 if our own output is closed,
 * else 0. */
int stream_pump(struct stream *stream);

/* Pass on a last line that has no newline, and close. */
void stream_end(struct stream *stream);

/* ---- files: a copy of what each rank writes ------------------------------ */

/* Give the ranks of a job of `size` files in the folder; NULL: no files. */
void files_init(const char *folder, int size);
int files_are_wanted(void);

/* EXIT_FAILURE if a file is incomplete, which was reported; else 0. */
int files_status(void);

/* Open a stream's file, if files are wanted; empty it unless the job starts again.  0, or
 * -1 after an error message. */
int files_open(struct stream *stream, int is_again);
void files_copy(struct stream *stream, const char *text, size_t len);
void files_close(struct stream *stream);

#endif
