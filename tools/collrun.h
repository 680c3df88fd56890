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
    int n_nodes;       /* hosts, 0: as many as are named */
    int per_node;      /* ranks of each, 0: as they say */
    int is_plain;      /* no prefix */
    int is_bound;      /* a core for each rank */
    int max_restarts;
    double timeout;    /* s; 0 for none */
    const char *run_id; /* of the user's, or NULL */
    /* where the collruns of several hosts meet, each started by itself: NULL, this
     * one is alone */
    char endpoint[256]; /* --rdzv-endpoint, whose parts these are: */
    const char *endpoint_host;
    int endpoint_port;
    int node_rank;           /* of the user's, or -1 */
    const char *master_addr; /* the endpoint in two parts, or NULL */
    int master_port;
    const char *hosts; /* "h1:4,h2:4" or NULL */
    const char *hostfile;
    const char *include, *exclude; /* of these hosts, "h1@h2:0,2" or NULL */
    const char *output_folder;     /* for copies of what ranks write, or NULL */
    int is_within;     /* this is one of so many ranks, which srun or mpirun has
                        * started; 0: it is not */
    const char *slots; /* of its hosts, for that one (hosts_write_slots()) */
    const char *scaling, *csv; /* "1,2,4" or NULL; where the table goes too */
    const char *models;        /* a table for each, "cnn,net"; or NULL */
    int n_rounds;              /* of scaling; 0: one */
    const char *variables[MAX_VARIABLES]; /* names, for other hosts' ranks */
    int n_variables;
    char **command;    /* argv of the program, NULL at its end */
    enum { ONLY_NOTHING, ONLY_HELP, ONLY_CHECK } only; /* ONLY_HELP: it is done */
};

/* Read the command line; 0, or the exit status, and why has been said. */
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

/* Note VAR or VAR=VALUE, or those of a file, for the ranks; 0, or -1, and why has been
 * said. */
int variables_take(struct options *options, const char *text);
int variables_read(struct options *options, const char *path);

/* Hand over to srun or mpirun; returns only an exit status for failure. */
int hosts_run(const struct options *options);

/* The first line of a file without the mark that editors on Windows begin it with. */
static inline char *skip_byte_order_mark(char *line)
{
    return line + (strncmp(line, "\xEF\xBB\xBF", 3) ? 0 : 3);
}

/* Print what this build can do. */
void check_build(void);

/* Bind the calling process to the rank's core, if there is a way. */
void bind_to_core(int rank);

/* ---- output: lines of the ranks, with "[rank] " once two have spoken ----- */

/* One of the two streams of one rank. */
struct stream {
    int fd;           /* the pipe's end, or -1 when it has ended */
    int rank, target; /* target: STDOUT_FILENO or STDERR_FILENO */
    int copy;         /* a file that gets the same, or -1 */
    char *held; /* the beginning of a line that has not ended yet; grows */
    size_t n_held, size; /* of `held`, bytes: so far, and allocated */
    int is_open; /* the beginning of the line has been written already */
};

/* A job of n ranks here begins, of which `first` is the first. */
void output_init(int is_plain, int first, int n);

/* The exit status that writing gives: 0 when all was written, that of SIGPIPE
 * when nobody reads it, else 1, after a sentence. */
int output_status(void);

/* Read what is there and pass on its whole lines; -1 when our own output is
 * closed, else 0. */
int stream_pump(struct stream *stream);

/* Pass on a last line without its end, and close. */
void stream_end(struct stream *stream);

/* ---- files: a copy of what each rank writes ------------------------------ */

/* Ranks of a job of `size` have files in that folder; NULL: they have none. */
void files_init(const char *folder, int size);
int files_are_wanted(void);

/* EXIT_FAILURE when one has not got all, which has been said. */
int files_status(void);

/* Make a stream's file, if there is to be one, empty unless the job starts again; 0, or
 * -1, and why has been said. */
int files_open(struct stream *stream, int is_again);
void files_copy(struct stream *stream, const char *text, size_t len);
void files_close(struct stream *stream);

#endif
