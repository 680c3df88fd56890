/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.h - the driver: libcoll and its rivals through one loop, in turns.
 *
 * compare.c       the order of everything, and the end
 * args.c          the command line
 * forms.c         the libraries: how each is started, what it takes
 * hosts.c         several hosts, made of this one: which rank is where
 * job.c           one library's ranks: start, command, answers, end
 * cell.c          one operation, size and number of ranks, in all libraries
 * limits.c        what the machine can do; kernels.c has the inner loops
 * limits_gpu.c    what its GPUs can do
 * model.c         how fast a cell can be at best, from the limits
 * machine.c       what the machine is
 * text.c json.c plot.c   what is said
 */
#ifndef COLL_RIVALS_COMPARE_H
#define COLL_RIVALS_COMPARE_H

#include "benchmarks/rivals/peer.h"

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    N_FORMS = 10,  /* libraries, or settings of one; 0 is libcoll */
    MAX_LIST = 32, /* sizes or numbers of ranks */
    MAX_ROUNDS = 25,
    N_AREAS = 6, /* working sets at which bandwidth is measured */
    MAX_CORES = 64,
    MAX_HOSTS = 16
};

/* ---- hosts.c ------------------------------------------------------------ */

/* Hosts that are network namespaces, and the ranks on each. */
struct hosts {
    int n; /* 0: all ranks are on this host, and the rest has no meaning */
    int placed[MAX_HOSTS]; /* ranks on each; 0s: any number, the same on each */
    const char *rate;      /* of each host's link, as tc says it, or NULL */
    double bytes_a_second; /* the same */
    char script[512], rsh[512]; /* tests/net/hosts, and the script that
                                 * replaces ssh */
    char folder[64];            /* of the hosts that are up, or were */
    int is_up;
};

/* Read "2" or "3+1", and a rate such as "1gbit" or "100mbit": 0, or -1. */
int hosts_parse(const char *text, struct hosts *hosts);
int hosts_parse_rate(const char *text, struct hosts *hosts);

/* hosts_up: create the hosts.  Returns 0, or 1 after printing what is missing.
 * hosts_down: remove them, if there are any. */
int hosts_up(struct hosts *hosts);
void hosts_down(struct hosts *hosts);

/* Distribute `ranks` ranks, which are numbered host by host: each[h] of them are on
 * host h.  Returns 0 if that number does not fit the hosts. */
int hosts_place(const struct hosts *hosts, int ranks, int each[MAX_HOSTS]);

/* Return the bytes that the busiest host must send or receive; `bytes` is the cell's
 * size. */
double hosts_crossing(const struct hosts *hosts, enum peer_op op, size_t bytes,
                      int ranks);

/* ---- args.c ------------------------------------------------------------- */

struct args {
    int is_quick, rounds;
    int on_gpu;      /* -d cuda */
    double seconds;  /* of samples, a library and round */
    double within;   /* of all, to aim at */
    double patience; /* with a library that does not answer */
    double gate;     /* least ratio; 0: none */
    struct hosts hosts;
    int ranks[MAX_LIST], n_ranks;
    size_t sizes[MAX_LIST];
    int n_sizes;
    int has_op[PEER_N_OPS], has_form[N_FORMS];
    const char *json, *plot; /* files, or NULL */
};

/* Returns 1 and *status if the program must end now, after an error sentence if there
 * is an error.
 */
int args_read(int argc, char **argv, struct args *args, int *status);

/* Print what went wrong, with the program's name; returns 1. */
int say(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern const char *const op_names[PEER_N_OPS];

/* ---- forms.c ------------------------------------------------------------ */

/* One library with one setting. */
struct form {
    const char *name;         /* on the command line */
    const char *title;        /* in words */
    const char *program;      /* the peer */
    const char *launchers[3]; /* the first that is found starts it */
    const char *packages;     /* Debian's packages that bring it */
    const char *settings[10]; /* further arguments of the launcher */
    const char *together[2];  /* before the launcher, on one host */
    const char *across[10];   /* also, on several hosts: RANKS_THERE,
                               * RSH_THERE */
    const char *bound[3];     /* also, when the launcher binds each rank to a
                               * core */
    const char *unbound[2];   /* also, when the launcher binds no rank */
    const char *crowded[3];   /* also, when ranks share cores */
    const char *options[1];   /* the peer's */
    const char *variable;     /* to be set to 1, or NULL */
    int is_own;               /* libcoll's, no rival */
    int is_measure; /* others are compared with it, and it is no rival */
    int is_for_host, is_for_hosts, is_for_gpu; /* where it is measured */
    int is_alone; /* each of its ranks needs a GPU of its own */
};
extern const struct form forms[N_FORMS];

/* Return 1 if it is measured with these arguments. */
int form_is_for(const struct form *form, const struct args *args);

/* Find a program beside this one, in the build tree, or where programs are
 * installed.  Result: 1 if it is there. */
int find_ours(char to[512], const char *name);

/* Words in `across` that form_line() replaces: by hosts such as h1:2,h2:2, and by the
 * path of rsh. */
#define RANKS_THERE "@ranks"
#define RSH_THERE "@rsh"

/* Where a form's two programs are. */
struct place {
    char launcher[512], peer[512];
    char why[256]; /* why it is not there; "" if it is */
    int on_gpu;
    const struct hosts *hosts; /* NULL: this one alone */
};
void form_find(const struct form *form, const struct args *args,
               struct place *place);

/* The launcher's command line, NULL at its end; words point into texts, place
 * and form. */
enum { MAX_WORDS = 48 };
struct texts {
    char ranks[16], each[64], there[192]; /* 4, 2+2, h1:2,h2:2 */
};
void form_line(const struct form *form, const struct place *place, int ranks,
               struct texts *texts, const char *line[MAX_WORDS]);

/* ---- job.c -------------------------------------------------------------- */

/* The ranks of one library.  If a job failed, its processes have ended and `why` has
 * the reason.
 */
struct job {
    const struct form *form;
    const struct place *place;
    const char *folder; /* for its socket and log */
    int ranks, is_up;
    pid_t launcher; /* 0: none */
    int listener, shared;
    int sockets[PEER_MAX_RANKS];
    pid_t pids[PEER_MAX_RANKS];
    char meet[256]; /* a folder in which the ranks find each other */
    char version[96], why[400];
};

/* Begin to start the job.  job_meet() waits until all its ranks are ready.  Each
 * returns 0, or -1 with the reason in job->why. */
int job_start(struct job *job);
int job_meet(struct job *job, double seconds);

/* The result of a command: for each sample the seconds of one operation, from the first
 * rank's beginning to the last rank's end, divided by the operations in a batch. */
struct answer {
    enum peer_status status;
    int n;
    uint64_t wrong;
    double seconds[PEER_MAX_SAMPLES];
};
int job_measure(struct job *job, const struct peer_command *command,
                double deadline, struct answer *answer);
void job_end(struct job *job);

double now_seconds(void);
extern volatile sig_atomic_t caught; /* the signal that was caught, or 0 */

/* ---- limits.c ----------------------------------------------------------- */

struct limits {
    int n_cores, n_areas;
    double exchange;   /* both cores write a flag and wait for the other's, s */
    double round_trip; /* of a cache line between two cores, s */
    double yield;      /* round trip of two processes on one core, s */
    struct area {
        size_t bytes; /* of each buffer of each core */
        /* Bytes a second, read and written together; first index: 1 for all cores
         * together, second index: 1 for stores that bypass the caches. */
        double copy[2][2], sum[2][2];
    } areas[N_AREAS];
    /* 0: all limits are the host's.  Else the areas are those of copies between buffers
     * of a GPU, and all numbers of an area are equal. */
    int n_gpus;
    double gpu_small; /* s, of a copy of 8 bytes there */
};

/* Return how many cores this process may use, and write their numbers to
 * cores[MAX_CORES] unless cores is NULL. */
int cores_list(int *cores);

/* Measure the machine's limits; bandwidth for buffers of up to somewhat more than
 * `most` bytes a core, flags for as long as befits cells of so many seconds.
 * limits_median() returns the median over several calls. */
int limits_measure(double most, double seconds, struct limits *limits);
void limits_median(const struct limits *runs, int n, struct limits *limits);

/* limits_gpu.c: limits_measure_gpu() measures copies inside a GPU by the driver, for
 * the same areas.  limits_find_gpu() finds the number of GPUs and the name of the
 * first.  Each returns 0, or 1 after printing what is missing. */
int limits_measure_gpu(double most, struct limits *limits);
int limits_find_gpu(int *n, char name[128]);

/* kernels.c: copy or add whole cache lines, by plain stores or past the caches.
 */
typedef void kernel_fn(float *to, const float *a, const float *b, size_t n);
kernel_fn *kernel(int is_sum, int is_past);

/* ---- cell.c ------------------------------------------------------------- */

enum outcome_status { NO_JOB, NO_OPERATION, FAILED, TOO_SLOW, MEASURED };

struct outcome {
    enum outcome_status status;
    int is_slow; /* measured once */
    int batch, n_rounds;
    uint64_t wrong;
    double rounds[MAX_ROUNDS]; /* each round's median, s */
    double median, spread;     /* of the rounds; s, (max - min) / median */
    double *single;            /* all samples of single operations */
    int n_single;
    double p99; /* of these, s; 0: none */
};

struct cell {
    enum peer_op op;
    size_t bytes;
    int ranks, best; /* the fastest rival's form; 0: none */
    struct outcome outcomes[N_FORMS];
    double ratio, spread; /* best rival / form 0; the larger spread of the
                           * two */
    double limit;         /* s, filled in when the limits are known */
};

/* Measure the cell in every job that is up, in about `allowance` seconds.  `before` is
 * the cell of the next smaller size, or NULL. */
void cell_measure(struct cell *cell, const struct cell *before,
                  struct job *jobs, const struct args *args, double allowance);
double median(double *values, int n); /* sorts them */

/* ---- model.c ------------------------------------------------------------ */

double model_bytes(enum peer_op op, size_t bytes, int ranks);
double model_buffers(const struct cell *cell, int n_cores); /* bytes a core */
double model_limit(const struct cell *cell, const struct limits *limits);
/* On several hosts: return the time that the link takes for the bytes that must cross
 * it, or, if the link has no rate limit, the time of plain sockets; 0 if unknown. */
double model_link(const struct cell *cell, const struct hosts *hosts);

/* ---- machine.c ---------------------------------------------------------- */

struct machine {
    char cpu[128], kernel[128], memory[64], pages[32], date[32];
    char control[32]; /* of congestion, by TCP */
    int cores;
};
void machine_read(struct machine *machine);
double machine_memory(void); /* bytes that are still free */

/* ---- what is said ------------------------------------------------------- */

/* All results, at the end. */
struct result {
    const struct args *args;
    struct machine machine;
    struct limits limits;
    struct place places[N_FORMS];
    char versions[N_FORMS][96];
    char gpu[128]; /* name of the first one, with -d cuda */
    int n_gpus;
    char troubles[N_FORMS][400]; /* what went wrong last, or "" */
    struct cell *cells;
    int n_cells;
    double seconds;
};

void text_head(const struct result *r);
void text_limits(const struct result *r);
void text_cell(const struct result *r, const struct cell *cell);
void text_end(const struct result *r);
/* Over all cells that have a ratio: return the geometric mean of the ratios,
 * and how many are at least 1. */
struct score {
    double mean;
    int wins, n;
};
struct score text_score(const struct result *r);
void text_bytes(size_t bytes, char text[16]);
int json_write(const struct result *r, const char *path);
int plot_write(const struct result *r, const char *path);

#endif
