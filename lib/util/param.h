/* SPDX-License-Identifier: BSD-3-Clause */
/* param.h - every COLL_* variable of the environment, in one table.
 *
 * A parameter is read from the environment at each use, never on a hot path.
 * coll__params_check() (lib/api) checks all of them when a communicator is made, so that
 * the functions below cannot fail.
 */
#ifndef COLL_LIB_UTIL_PARAM_H
#define COLL_LIB_UTIL_PARAM_H

#include <stddef.h>

/* How the text of a parameter is read. */
enum coll__param_kind {
    PARAM_TEXT,
    PARAM_INT,     /* a whole number, 0 or more */
    PARAM_SECONDS, /* a number above 0, seconds */
    PARAM_BYTES,   /* a number with K, M or G behind it (powers of 1024) */
    PARAM_CHOICE   /* one of the words in `standard|word|word` of `words` */
};

/* X(id, kind, default, words or NULL, description) */
#define COLL_PARAM_MAP(X)                                                      \
    X(RANK, PARAM_INT, "", NULL, "this process's rank; collrun sets it")       \
    X(SIZE, PARAM_INT, "", NULL, "the number of ranks; collrun sets it")       \
    X(ROOT, PARAM_TEXT, "", NULL,                                              \
      "rank 0's rendezvous address, HOST:PORT; collrun sets it")               \
    X(JOB_SECRET, PARAM_TEXT, "", NULL,                                        \
      "what the ranks of a job prove to each other; collrun sets it")          \
    X(JOB_SECRET_FILE, PARAM_TEXT, "", NULL,                                   \
      "a file of mode 0600 whose first line is that secret, for launchers "    \
      "that "                                                                  \
      "give none")                                                             \
    X(BOOTSTRAP, PARAM_TEXT, "", NULL,                                         \
      "use this bootstrap and no other (collrun, pmix, pmi, ompi, torchrun, "  \
      "horovod, slurm, single)")                                               \
    X(NET_PORTS, PARAM_TEXT, "", NULL,                                         \
      "listen on a port in this range only, FIRST-LAST")                       \
    X(NET_INTERFACE, PARAM_TEXT, "", NULL,                                     \
      "listen on this network interface only")                                 \
    X(NET_FAMILY, PARAM_CHOICE, "any", "any|ip4|ip6",                          \
      "which addresses are used between processes")                            \
    X(NET_ENCRYPT, PARAM_CHOICE, "0", "0|1",                                   \
      "1: encrypt and authenticate all that goes between processes by tcp; "   \
      "ucx "                                                                   \
      "is not used then")                                                      \
    X(TIMEOUT, PARAM_SECONDS, "300", NULL,                                     \
      "the deadline of every wait, in seconds")                                \
    X(STALL_WARN, PARAM_INT, "60", NULL,                                       \
      "after so many seconds a wait says once, as a warning, which ranks "     \
      "have "                                                                  \
      "not come to its call, and goes on; 0: never")                           \
    X(TRANSPORTS, PARAM_TEXT, "self,shm,ucx,tcp", NULL,                        \
      "the transports allowed, in order of preference; self always is")        \
    X(ALGO, PARAM_TEXT, "", NULL,                                              \
      "force algorithms: NAME or COLLECTIVE:NAME, separated by commas; "       \
      "coll_plan --explain lists the names")                                   \
    X(PLAN_FILE, PARAM_TEXT, "", NULL,                                         \
      "use the plans in these files (coll_plan --dump), separated by ':'")     \
    X(CHUNK, PARAM_BYTES, "128K", NULL,                                        \
      "the pipeline chunk of large messages; 0 sends them whole")              \
    X(FUSE, PARAM_BYTES, "64K", NULL,                                          \
      "allreduces of a group that are no larger in all travel as one; 0 "      \
      "never")                                                                 \
    X(CACHE, PARAM_BYTES, "32M", NULL,                                         \
      "memory of the plans that a communicator keeps for its next calls")      \
    X(REPRODUCIBLE, PARAM_CHOICE, "0", "0|1",                                  \
      "1: float sums give the same bits whatever the size, the algorithm and " \
      "the placement of the ranks")                                            \
    X(TUNE_FILE, PARAM_TEXT, "", NULL,                                         \
      "choose algorithms by this file, which coll_tune writes")                \
    X(WAIT, PARAM_CHOICE, "auto", "auto|spin|yield|block",                     \
      "how to wait: auto spins while each rank has a core of its own (those "  \
      "that affinity and CPU quotas leave), gives way otherwise, and sleeps "  \
      "late; spin and yield never sleep, block sleeps soon")                   \
    X(PROGRESS, PARAM_CHOICE, "auto", "auto|thread|off",                       \
      "a thread that moves what is started while its caller computes: auto "   \
      "has it from the first request on that asks for it")                     \
    X(SIMD, PARAM_CHOICE, "auto", "auto|avx512|avx2|base",                     \
      "the instruction set of the reductions; auto takes the best one")        \
    X(CMA, PARAM_CHOICE, "auto", "auto|off",                                   \
      "auto: messages that two ranks of a host exchange are read straight "    \
      "from the sender's memory, where the kernel allows it")                  \
    X(CUDA_ENGINE, PARAM_CHOICE, "auto", "auto|stream|kernel",                 \
      "how operations on GPU buffers of a host are carried out: as copies, "   \
      "kernels and flags in the stream (stream), or as one kernel that waits " \
      "for the other ranks' (kernel); auto: one kernel if the operation is "   \
      "small and each rank has a GPU of its own")                              \
    X(CHECK, PARAM_CHOICE, "0", "0|1",                                         \
      "1: calls that would go from GPU to GPU are compared between the ranks " \
      "as they are made: a collective waits for all of them, a receive for "   \
      "its sender; 0: only what the host carries is compared")                 \
    X(DIAGNOSE, PARAM_CHOICE, "0", "0|1",                                      \
      "1: when a communicator is made, and not from another one, measure the " \
      "links between its hosts and between the ranks of each host; rank 0 "    \
      "prints those that are 3 times slower than the median of their level, "  \
      "or a summary")                                                          \
    X(TOPO_FILE, PARAM_TEXT, "", NULL,                                         \
      "read the machine from this hwloc XML file instead of discovering it")   \
    X(LOG, PARAM_TEXT, "", NULL,                                               \
      "log level (error, warn, info, debug, trace; warn if unset), also per "  \
      "part: topo:debug,ucx:trace; plan:debug names the algorithms chosen")    \
    X(PROFILE, PARAM_TEXT, "", NULL,                                           \
      "write a table of each rank's operations to coll_profile.RANK (1), or "  \
      "to "                                                                    \
      "PREFIX.RANK, as the program ends")                                      \
    X(TIMELINE, PARAM_TEXT, "", NULL,                                          \
      "write rank 0's operations to this file, for chrome://tracing and "      \
      "Perfetto; with %r in its name, each rank's to its own.  "               \
      "HOROVOD_TIMELINE does the same")                                        \
    X(MPI_REPORT, PARAM_CHOICE, "0", "0|1",                                    \
      "1: the libraries to preload into MPI programs say at MPI_Finalize() "   \
      "which calls libcoll carried, and which were left to MPI")               \
    X(HISTORY, PARAM_TEXT, "", NULL,                                           \
      "write each rank's last calls to this file, as JSON for coll_history, "  \
      "when a communicator fails and at a SIGUSR2; %r in its name is the "     \
      "rank, or .RANK is added")                                               \
    X(METRICS, PARAM_TEXT, "", NULL,                                           \
      "write each rank's calls, bytes, time and waiting of each routine to "   \
      "this file in Prometheus' text form, every 10 s, at a SIGUSR2 and at "   \
      "the end; %r in its name is the rank, or .RANK is added")                \
    X(LIBRARY, PARAM_TEXT, "", NULL,                                           \
      "the libcoll.so that the Python package loads")

enum coll__param {
#define X(id, kind, standard, words, what) PARAM_##id,
    COLL_PARAM_MAP(X)
#undef X
    N_PARAMS
};

/* Return the name, "COLL_TIMEOUT". */
const char *coll__param_name(enum coll__param id);

/* Return the parameter's text: the environment's, or the default.
 *
 * Ownership: the environment's or static.
 */
const char *coll__param_text(enum coll__param id);

/* Say whether the environment sets it, and not to an empty text. */
int coll__param_is_set(enum coll__param id);

/* Return the value as a number: whole, seconds or bytes. */
long coll__param_int(enum coll__param id);
double coll__param_seconds(enum coll__param id);
size_t coll__param_bytes(enum coll__param id);

/* Read a size such as 64, 4K, 1.5M or 2G (powers of 1024).
 *
 * Result:    0 and *bytes, or -1 when the text is no size.
 */
int coll__parse_bytes(const char *text, size_t *bytes);

/* Check the environment's text.  Returns NULL if it is valid, else what it must be ("a
 * size such as 64K or 1M"). */
const char *coll__param_fault(enum coll__param id);

#endif
