/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun.c - start the ranks of a job: the command line. */
#include "tools/collrun.h"

#include <coll/coll.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: collrun -n RANKS [options] PROGRAM [ARGUMENTS]\n"
    "       collrun --hosts HOST:RANKS,... [options] PROGRAM [ARGUMENTS]\n"
    "       collrun --nnodes N --nproc-per-node M --rdzv-endpoint HOST:PORT\n"
    "               [options] PROGRAM [ARGUMENTS]        (on each of N hosts)\n"
    "Start RANKS processes of PROGRAM that find each other by libcoll.\n"
    "\n"
    "  -n, -np RANKS      how many ranks, on this machine; also --num-proc\n"
    "      --nproc-per-node N\n"
    "                     ranks of each host, or cpu, gpu, auto: one for each\n"
    "                     core, each GPU, or what there is; also --npernode,\n"
    "                     -ppn\n"
    "      --nnodes N     how many hosts; more than 1 need --hosts, or a\n"
    "                     collrun on each of them, with --rdzv-endpoint\n"
    "      --rdzv-endpoint HOST[:PORT]\n"
    "                     where these collruns meet, in any order, within\n"
    "                     COLL_TIMEOUT (300 s): on one of the hosts (29400)\n"
    "      --rdzv-id ID   the run's name, the same for all of them; the ranks\n"
    "                     are told it\n"
    "      --node-rank R, --master-addr HOST, --master-port PORT\n"
    "                     the same, where each is told which host it is; 0 is\n"
    "                     the one at HOST (29500)\n"
    "  -H, --hosts LIST   on these hosts, by srun (inside a Slurm allocation)\n"
    "                     or mpirun, whichever is there\n"
    "      --hostfile FILE\n"
    "                     the same from a file: lines HOST, HOST:N, or HOST\n"
    "                     slots=N; # begins a comment\n"
    "  -i, --include H[:SLOT,...][@H...]\n"
    "                     of these hosts those alone, or of their slots,\n"
    "                     from 0 on; ranks see the GPUs of these numbers\n"
    "  -e, --exclude H[:SLOT,...][@H...]\n"
    "                     all but those\n"
    "  -x VAR[=VALUE]     give the ranks this variable, on other hosts too\n"
    "      --env-file FILE\n"
    "                     the same from a file: lines VAR=VALUE or VAR; #\n"
    "                     begins a comment\n"
    "      --output-filename DIR\n"
    "                     write what rank N writes to DIR/rank.N/stdout and\n"
    "                     stderr as well, each host's there; no rank has the\n"
    "                     terminal itself then\n"
    "      --bind WHAT    core: a core for each rank, in turn; none (default)\n"
    "      --no-prefix    pass the lines on as they are\n"
    "      --timeout S    end the job after S seconds, with status 124\n"
    "      --max-restarts N\n"
    "                     when a rank fails, start all of them again, N times\n"
    "                     at most; coll_train goes on from its checkpoint\n"
    "      --scaling N,N,... [--repeat R] [--csv FILE] [--models M,M,...]\n"
    "                     run coll_train with each of these numbers of ranks, "
    "R\n"
    "                     times by turns, and print a table of the medians; a\n"
    "                     table for each --model\n"
    "  -cb, --check-build print what this build can do and exit\n"
    "  -h, --help         print this and exit\n"
    "  -V, --version      print the version and exit\n"
    "\n"
    "An option may have _ in place of -, and a single - before its name.\n"
    "\n"
    "Ranks find RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_SIZE, LOCAL_WORLD_SIZE,\n"
    "GROUP_RANK, CROSS_RANK, CROSS_SIZE, MASTER_ADDR and MASTER_PORT in their\n"
    "environment, so programs made for torchrun start as well.\n"
    "\n"
    "Lines begin with \"[rank] \" once a second rank has written to the same\n"
    "stream.  stdin goes to rank 0, and a terminal at stdout is rank 0's own.\n"
    "A rank that fails ends the job: the others have 2 s to report, then get\n"
    "TERM, and KILL 2 s later (10 s after a TERM to collrun); collrun exits "
    "with the failed rank's status,\n"
    "128 + the signal that killed it, or 127 or 126 when PROGRAM is not found\n"
    "or cannot be run.\n";

void complain(const char *format, ...)
{
    va_list args;

    fputs("collrun: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* A full disk shows only now. */
static int end_output(void)
{
    if (!ferror(stdout) && !fclose(stdout))
        return EXIT_SUCCESS;
    complain("cannot write the output: %s; make room or write elsewhere",
             strerror(errno));
    return EXIT_FAILURE;
}

/* After a table: the first that went wrong. */
static int status_of_output(int status)
{
    return status ? status : end_output();
}

/* What needs no program: 1 when that was all. */
static int print_only(const struct options *o)
{
    if (o->only == ONLY_HELP)
        fputs(usage, stdout);
    if (o->only == ONLY_VERSION)
        printf("collrun (libcoll) %s\n", coll_version());
    if (o->only == ONLY_CHECK)
        check_build();
    return o->only != ONLY_NOTHING;
}

/* Put /dev/null where stdin, stdout or stderr is closed: what the ranks print there
 * must not go to a descriptor of this program's own. */
static void fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    static struct options o; /* and what it points to: as long as the program */
    int status = options_parse(&o, argc, argv);

    if (status)
        return status;
    if (print_only(&o))
        return end_output();
    fill_standard();
    if (o.scaling)
        return status_of_output(scaling_run(&o));
    return o.hosts || o.hostfile ? hosts_run(&o) : job_run(&o);
}
