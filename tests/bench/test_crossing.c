/* SPDX-License-Identifier: BSD-3-Clause */
/* test_crossing.c - a rank of a job over hosts: what crosses the host's link, counted
 * there.  tests/bench/crossing.sh starts it.
 *
 *     test_crossing COLLECTIVE LEAST MOST
 *
 * Calls of 1 MiB in all.  On each host the lowest rank reads the counters of eth0
 * before and after and holds the bytes of a call, in and out, against LEAST and MOST,
 * in MiB for each.  What was sent again since a packet got lost does not count: then
 * all is done once more.  A line for each host; exit status 1 when it is not so.
 */
#include <coll/coll.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 8, TRIES = 20 };
#define BYTES ((size_t)1 << 20)
#define MIB (1024. * 1024)

/* What headers, acknowledgements and the barriers add: of the bytes, and in all. */
#define SHARE 0.06
#define EXTRA 0.02 /* MiB a call */

static struct coll_comm *comm;
static float *in, *out;

static void check(int rc, const char *what)
{
    if (!rc)
        return;
    fprintf(stderr, "%s: %s\n", what, coll_last_error());
    exit(1);
}

static double number_in(const char *path)
{
    double value = -1;
    FILE *file = fopen(path, "re");

    if (!file || fscanf(file, "%lf", &value) != 1) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return value;
}

/* Segments that this host sent again. */
static double sent_again(void)
{
    char line[2][1024];
    char *key, *value, *keys = line[0], *values = line[1];
    double found = 0;
    FILE *file = fopen("/proc/net/snmp", "re");

    while (file && fgets(line[0], sizeof(line[0]), file))
        if (!strncmp(line[0], "Tcp:", 4))
            break;
    if (!file || !fgets(line[1], sizeof(line[1]), file)) {
        fprintf(stderr, "cannot read /proc/net/snmp\n");
        exit(1);
    }
    fclose(file);
    while ((key = strsep(&keys, " ")) && (value = strsep(&values, " ")))
        if (!strcmp(key, "RetransSegs"))
            found = strtod(value, NULL);
    return found;
}

struct counts {
    double in, out, again;
};

static struct counts count(void)
{
    return (struct counts){number_in("/sys/class/net/eth0/statistics/rx_bytes"),
                           number_in("/sys/class/net/eth0/statistics/tx_bytes"),
                           sent_again()};
}

static int call(const char *name)
{
    size_t n = BYTES / sizeof(float), block = n / (size_t)coll_comm_size(comm);

    if (!strcmp(name, "allreduce"))
        return coll_allreduce(in, out, n, COLL_F32, COLL_SUM, comm, NULL);
    if (!strcmp(name, "broadcast"))
        return coll_broadcast(in, in, n, COLL_F32, 0, comm, NULL);
    if (!strcmp(name, "reduce"))
        return coll_reduce(in, out, n, COLL_F32, COLL_SUM, 0, comm, NULL);
    if (!strcmp(name, "allgather"))
        return coll_allgather(in, out, block, COLL_F32, comm, NULL);
    if (!strcmp(name, "reduce_scatter"))
        return coll_reduce_scatter(in, out, block, COLL_F32, COLL_SUM, comm,
                                   NULL);
    if (!strcmp(name, "alltoall"))
        return coll_alltoall(in, out, block, COLL_F32, comm, NULL);
    fprintf(stderr, "there is no collective '%s'\n", name);
    exit(2);
}

static void barrier(void) { check(coll_barrier(comm, NULL), "barrier"); }

/* MiB of a call, in and out; 0 when packets were sent again on any host. */
static int measure(const char *name, double *came, double *went)
{
    struct counts before, after;
    int32_t is_clean;

    barrier();
    before = count();
    barrier(); /* nobody has begun before all have read */
    for (int i = 0; i < CALLS; i++)
        check(call(name), name);
    barrier();
    after = count();
    is_clean = after.again == before.again;
    check(
        coll_allreduce(&is_clean, &is_clean, 1, COLL_I32, COLL_MIN, comm, NULL),
        "allreduce");
    *came = (after.in - before.in) / CALLS / MIB;
    *went = (after.out - before.out) / CALLS / MIB;
    return is_clean;
}

static int is_between(double value, double least, double most)
{
    return value > least - EXTRA && value < most * (1 + SHARE) + EXTRA;
}

int main(int argc, char **argv)
{
    double came = 0, went = 0, all, least, most;
    int tries = 0, is_well;

    if (argc != 4)
        return 2;
    least = strtod(argv[2], NULL);
    most = strtod(argv[3], NULL);
    check(coll_comm_create_env(&comm, NULL), "coll_comm_create_env");
    in = calloc(1, BYTES);
    out = calloc(1, BYTES);
    if (!in || !out)
        return 99;
    check(call(argv[1]), argv[1]); /* connections are made now */
    while (!measure(argv[1], &came, &went))
        if (++tries == TRIES) {
            fprintf(stderr, "packets were lost %d times\n", tries);
            coll_comm_destroy(comm); /* others may not have come so far */
            return 77;
        }
    all = came > went ? came : went;
    is_well = is_between(all, least, most) && is_between(came, 0, most) &&
              is_between(went, 0, most);
    if (coll_comm_local_rank(comm) == 0)
        printf("%s: %.3f MiB in, %.3f out, of %g to %g%s\n", argv[1], came,
               went, least, most, is_well ? "" : ": NOT SO");
    coll_comm_destroy(comm);
    free(in);
    free(out);
    return !is_well;
}
