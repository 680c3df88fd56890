/* SPDX-License-Identifier: BSD-3-Clause */
/* test_launch.c - bootstraps by the variables and servers of launchers: PMI's lines,
 * Horovod's server, secrets of jobs; and each way in which these are not as they should
 * be.  Real launchers: hydra.sh, slurm.sh, mpirun.sh. */
#include "lib/boot/boot.h"
#include "lib/boot/joined.h"
#include "lib/boot/launcher_env.h"
#include "lib/net/net.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60

static void says(const char *text)
{
    ck_assert_msg(strstr(coll_last_error(), text) != NULL, "no '%s' in: %s",
                  text, coll_last_error());
}

static void set_up(void)
{
    static const char *const others[] = {"COLL_RANK",
                                         "COLL_SIZE",
                                         "COLL_ROOT",
                                         "COLL_BOOTSTRAP",
                                         "RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_RANK",
                                         "PMI_FD",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "HOROVOD_RANK",
                                         "HOROVOD_SIZE",
                                         "SLURM_STEP_ID",
                                         "PMIX_NAMESPACE",
                                         "COLL_JOB_SECRET",
                                         "COLL_JOB_SECRET_FILE"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        unsetenv(others[i]);
}

/* Open by the environment, which must fail and say so. */
static void fails(const char *text)
{
    struct coll__boot boot;

    ck_assert_int_eq(coll__boot_open_env(&boot, 1), COLL_ERR_BOOTSTRAP);
    says(text);
}

/* ---- secrets ------------------------------------------------------------- */

static int secret_of(const char *content, mode_t mode,
                     unsigned char secret[COLL__SECRET_BYTES])
{
    char path[] = "/tmp/test_launch.XXXXXX";
    int fd = mkstemp(path), rc;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)),
                     (ssize_t)strlen(content));
    fchmod(fd, mode);
    close(fd);
    setenv("COLL_JOB_SECRET_FILE", path, 1);
    rc = coll__launcher_secret("job 7", "srun", 0, secret);
    unlink(path);
    return rc;
}

START_TEST(a_file_may_hold_the_secret)
{
    unsigned char a[COLL__SECRET_BYTES], b[COLL__SECRET_BYTES];

    ck_assert_int_eq(coll__launcher_secret("job 7", "srun", 0, a), COLL_OK);
    ck_assert_int_eq(secret_of("quiet\n", 0600, b), COLL_OK);
    ck_assert(memcmp(a, b, sizeof(a)) != 0);
    ck_assert_int_eq(secret_of("quiet\nmore", 0400, a), COLL_OK);
    ck_assert(!memcmp(a, b, sizeof(a)));
    setenv("COLL_JOB_SECRET", "quiet", 1); /* the same, and before the file */
    ck_assert_int_eq(secret_of("loud", 0600, a), COLL_OK);
    ck_assert(!memcmp(a, b, sizeof(a)));
    ck_assert_int_eq(coll__launcher_secret("job 8", "srun", 0, a), COLL_OK);
    ck_assert(memcmp(a, b, sizeof(a)) != 0);
}
END_TEST

START_TEST(a_file_that_keeps_no_secret_is_refused)
{
    unsigned char secret[COLL__SECRET_BYTES];

    ck_assert_int_eq(secret_of("quiet\n", 0640, secret), COLL_ERR_INVALID);
    says("others may read it; chmod 600 it");
    ck_assert_int_eq(secret_of("", 0600, secret), COLL_ERR_INVALID);
    says("it is empty");
    ck_assert_int_eq(secret_of("\nquiet", 0600, secret), COLL_ERR_INVALID);
    says("its first line is empty");
    setenv("COLL_JOB_SECRET_FILE", "/no/such/file", 1);
    ck_assert_int_eq(coll__launcher_secret("", "srun", 0, secret),
                     COLL_ERR_INVALID);
    says("/no/such/file: No such file");
    setenv("COLL_JOB_SECRET_FILE", "/tmp", 1);
    ck_assert_int_eq(coll__launcher_secret("", "srun", 0, secret),
                     COLL_ERR_INVALID);
    says("it is no regular file");
}
END_TEST

/* ---- variables ----------------------------------------------------------- */

START_TEST(half_a_set_is_an_error)
{
    setenv("SLURM_STEP_ID", "0", 1);
    unsetenv("SLURM_PROCID");
    fails("SLURM_STEP_ID is set but SLURM_PROCID is not");
    unsetenv("SLURM_STEP_ID");
    setenv("PMI_FD", "3", 1);
    unsetenv("PMI_RANK");
    fails("PMI_FD is set but PMI_RANK is not");
    unsetenv("PMI_FD");
    setenv("HOROVOD_RANK", "0", 1);
    fails("HOROVOD_RANK is set but HOROVOD_SIZE is not");
}
END_TEST

START_TEST(variables_that_are_wrong)
{
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_JOB_ID", "5", 1);
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    setenv("SLURM_PROCID", "3", 1);
    setenv("SLURM_STEP_NODELIST", "n[1-2", 1);
    fails("SLURM_PROCID=3 is not valid: it must be 0 to 2");
    setenv("SLURM_PROCID", "2", 1);
    fails("SLURM_STEP_NODELIST=n[1-2 is no list of hosts");
    setenv("SLURM_STEP_NODELIST", "no-such-host.invalid", 1);
    fails("cannot find the address of host no-such-host.invalid");
    unsetenv("SLURM_STEP_ID");
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    fails("started 2 of 4 ranks on this host, and a libcoll without PMIx");
}
END_TEST

static int joins(struct world_rank *me, const char *by)
{
    struct coll_comm *comm;

    setenv("COLL_BOOTSTRAP", by, 1);
    for (int n = 0; n < 2; n++) { /* and a second group of the job */
        WORLD_CHECK(me, !coll_comm_create_env(&comm, NULL));
        WORLD_CHECK(me, coll_comm_rank(comm) == me->rank);
        WORLD_CHECK(me, coll_comm_size(comm) == me->size);
        WORLD_CHECK(me, !world_sum(comm, 3));
        WORLD_CHECK(me, !coll_comm_destroy(comm));
    }
    return 0;
}

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    setenv(name, text, 1);
}

static int by_slurm(struct world_rank *me)
{
    set_number("SLURM_PROCID", me->rank);
    set_number("SLURM_STEP_NUM_TASKS", me->size);
    return joins(me, "slurm");
}

static int by_ompi(struct world_rank *me)
{
    set_number("OMPI_COMM_WORLD_RANK", me->rank);
    set_number("OMPI_COMM_WORLD_SIZE", me->size);
    set_number("OMPI_COMM_WORLD_LOCAL_SIZE", me->size);
    return joins(me, "ompi");
}

START_TEST(ranks_of_variables_meet)
{
    set_number("SLURM_JOB_ID", (int)getpid());
    set_number("OMPI_MCA_ess_base_jobid", (int)getpid());
    setenv("SLURM_STEP_ID", "3", 1);
    setenv("SLURM_STEP_NUM_NODES", "1", 1);
    setenv("SLURM_STEP_NODELIST", "n1", 1);
    for (int size = 1; size <= 4; size++) {
        ck_assert_int_eq(world_fork(size, by_slurm, NULL, DEADLINE), 0);
        ck_assert_int_eq(world_fork(size, by_ompi, NULL, DEADLINE), 0);
    }
}
END_TEST

/* ---- PMI ----------------------------------------------------------------- */

/* What a server answers line by line, and how it is judged. */
static const struct {
    const char *answers, *says;
} servers[] = {
    {"", "the launcher's PMI server has gone"},
    {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=1\n",
     "answered 'cmd=response_to_init"},
    {"HTTP/1.0 400 Bad Request\n", "answered 'HTTP/1.0 400"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname\n", "has no space for keys"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\n"
     "cmd=put_result rc=-1 msg=full\n",
     "answered 'cmd=put_result"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\n"
     "cmd=put_result rc=0\n",
     "has gone"},
};

static void serve(const char *answers, size_t len)
{
    char number[16];
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(write(ends[0], answers, len), (ssize_t)len);
    shutdown(ends[0], SHUT_WR);
    snprintf(number, sizeof(number), "%d", ends[1]);
    setenv("PMI_FD", number, 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
}

START_TEST(a_pmi_server_that_is_none)
{
    serve(servers[_i].answers, strlen(servers[_i].answers));
    fails(servers[_i].says);
}
END_TEST

START_TEST(a_pmi_line_without_end)
{
    static char line[5000];

    memset(line, 'x', sizeof(line));
    serve(line, sizeof(line));
    fails("says more than a line holds");
}
END_TEST

START_TEST(a_pmi_server_that_is_silent)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    serve("", 0);
    set_number("PMI_FD", ends[1]);
    fails("not every rank came to the PMI server's barrier in time");
}
END_TEST

START_TEST(a_pmi_descriptor_that_is_closed)
{
    serve("", 0);
    setenv("PMI_FD", "987", 1);
    fails("the launcher's PMI server takes no more words");
}
END_TEST

/* As for the second program of a script. */
START_TEST(a_pmi_server_that_has_left_ends_nobody)
{
    int ends[2];
    char text[16];

    serve("", 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[0]);
    snprintf(text, sizeof(text), "%d", ends[1]);
    setenv("PMI_FD", text, 1);
    fails("has closed the connection");
}
END_TEST

/* ---- Horovod's server ---------------------------------------------------- */

#define KEYS 8
#define LEN 2048

/* As Horovod's: PUT keeps, GET gives, or 404. */
struct kv {
    int fd;
    const char *nonsense; /* said instead; or NULL */
    char keys[KEYS][64], values[KEYS][LEN];
    int n;
};

static void answer(struct kv *kv, int fd, const char *request)
{
    char key[64], text[LEN + 100] = "HTTP/1.0 404 Not Found\r\n\r\n";
    const char *body = strstr(request, "\r\n\r\n");

    if (sscanf(request, "PUT %63s", key) == 1 && kv->n < KEYS) {
        snprintf(kv->keys[kv->n], sizeof(key), "%s", key);
        snprintf(kv->values[kv->n++], LEN, "%s", body + 4);
        snprintf(text, sizeof(text), "HTTP/1.0 200 OK\r\n\r\n");
    } else if (sscanf(request, "GET %63s", key) == 1) {
        for (int i = 0; i < kv->n; i++)
            if (!strcmp(kv->keys[i], key))
                snprintf(text, sizeof(text), "HTTP/1.0 200 OK\r\n\r\n%s",
                         kv->values[i]);
    }
    if (kv->nonsense)
        snprintf(text, sizeof(text), "%s", kv->nonsense);
    coll__net_write(fd, text, strlen(text), coll__now() + 5);
}

static int is_whole(const char *request)
{
    const char *body = strstr(request, "\r\n\r\n"),
               *len = strstr(request, "Content-Length: ");

    return body && (!len || strlen(body + 4) >= strtoul(len + 16, NULL, 10));
}

static void keep(struct kv *kv)
{
    char request[LEN];
    ssize_t n;
    int fd;

    for (;;) {
        struct pollfd file = {.fd = kv->fd, .events = POLLIN};
        size_t at = 0;

        if (poll(&file, 1, -1) < 0 || (fd = accept(kv->fd, NULL, NULL)) < 0)
            return;
        memset(request, 0, sizeof(request));
        while (!is_whole(request) && at < sizeof(request) - 1 &&
               (n = read(fd, request + at, sizeof(request) - 1 - at)) > 0)
            at += (size_t)n;
        if (at)
            answer(kv, fd, request);
        close(fd);
    }
}

/* In a process of its own, which ends with the test's. */
static void start_kv(struct kv *kv)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];
    pid_t pid;

    ck_assert_int_eq(coll__net_listen(REACH_HOST, &kv->fd), COLL_OK);
    ck_assert_int_ge(coll__net_own_addrs(kv->fd, addrs), 1);
    setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1", 1);
    set_number("HOROVOD_GLOO_RENDEZVOUS_PORT", coll__net_port(&addrs[0]));
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    keep(kv);
    _exit(0);
}

static int by_horovod(struct world_rank *me)
{
    if (!me->rank)
        usleep(200000); /* the others look before there is anything */
    set_number("HOROVOD_RANK", me->rank);
    set_number("HOROVOD_SIZE", me->size);
    return joins(me, "horovod");
}

START_TEST(ranks_of_horovodrun_meet)
{
    struct kv kv = {0};

    start_kv(&kv);
    ck_assert_int_eq(world_fork(3, by_horovod, NULL, DEADLINE), 0);
}
END_TEST

static const struct {
    const char *nonsense, *says;
} keepers[] = {
    {"SSH-2.0-OpenSSH_9.2\r\n", "does not answer as an HTTP server"},
    {"HTTP/1.0 500 No\r\n\r\n", "does not give what rank 0 has laid down"},
    {"HTTP/1.0 200 OK\r\n\r\nnone", "rank 0 could not listen for the others"},
    {"HTTP/1.0 404 No\r\n\r\n", "rank 0 did not come to horovodrun's"},
};

START_TEST(a_server_of_horovod_that_is_none)
{
    struct kv kv = {.nonsense = keepers[_i].nonsense};

    start_kv(&kv);
    setenv("HOROVOD_RANK", "1", 1);
    setenv("HOROVOD_SIZE", "2", 1);
    fails(keepers[_i].says);
}
END_TEST

static int n_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

START_TEST(no_server_of_horovod)
{
    int n;

    setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1", 1);
    setenv("HOROVOD_GLOO_RENDEZVOUS_PORT", "1", 1);
    setenv("HOROVOD_RANK", "0", 1);
    setenv("HOROVOD_SIZE", "2", 1);
    fails("rendezvous server at 127.0.0.1:1 cannot be reached");
    n = n_descriptors(); /* the launcher's process is watched */
    fails("rendezvous server at 127.0.0.1:1 cannot be reached");
    ck_assert_int_eq(n_descriptors(), n);
}
END_TEST

/* ---- children of ranks --------------------------------------------------- */

static const struct {
    const char *name, *variables[6], *rank;
} launchers[] = {
    {"collrun",
     {"COLL_SIZE=2", "COLL_ROOT=127.0.0.1:1", "COLL_JOB_SECRET=x"},
     "COLL_RANK"},
    {"pmix", {"PMIX_NAMESPACE=x"}, "PMIX_RANK"},
    {"pmi", {"PMI_FD=9", "PMI_SIZE=2"}, "PMI_RANK"},
    {"ompi",
     {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     "OMPI_COMM_WORLD_RANK"},
    {"torchrun",
     {"WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"},
     "RANK"},
    {"horovod",
     {"HOROVOD_SIZE=2", "HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1",
      "HOROVOD_GLOO_RENDEZVOUS_PORT=1"},
     "HOROVOD_RANK"},
    {"slurm",
     {"SLURM_STEP_ID=0", "SLURM_JOB_ID=1", "SLURM_STEP_NUM_TASKS=2",
      "SLURM_STEP_NODELIST=h1", "SLURM_STEP_NUM_NODES=1"},
     "SLURM_PROCID"},
};

static const struct coll__boot_ops *boot_of(const char *name)
{
    for (int i = 0; coll__boots[i]; i++)
        if (!strcmp(coll__boots[i]->name, name))
            return coll__boots[i];
    return NULL;
}

/* A child with the rank's variables is refused, another rank is not. */
static int judge_child(const struct coll__boot_ops *ops, const char *rank)
{
    char text[128];
    struct coll__boot boot;

    snprintf(text, sizeof(text), "has joined as the rank that %s=1", rank);
    if (coll__boot_open_env(&boot, 1) != COLL_ERR_INVALID ||
        !strstr(coll_last_error(), text))
        return 1;
    setenv(rank, "0", 1);
    return coll__joined_ancestor(ops) ? 2 : 0;
}

START_TEST(a_child_of_a_rank_is_refused)
{
    const struct coll__boot_ops *ops = boot_of(launchers[_i].name);
    int status;
    pid_t pid;

    if (!ops) /* a build without PMIx */
        return;
    for (int i = 0; launchers[_i].variables[i]; i++)
        putenv((char *)launchers[_i].variables[i]);
    setenv(launchers[_i].rank, "1", 1);
    ck_assert_int_eq(coll__joined_ancestor(ops), 0);
    coll__joined_mark(ops);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid)
        _exit(judge_child(ops, launchers[_i].rank));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch");
    TCase *tc = suite_case(suite, "launch", 4 * DEADLINE);

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, a_file_may_hold_the_secret);
    tcase_add_test(tc, a_file_that_keeps_no_secret_is_refused);
    tcase_add_test(tc, half_a_set_is_an_error);
    tcase_add_test(tc, variables_that_are_wrong);
    tcase_add_test(tc, ranks_of_variables_meet);
    tcase_add_loop_test(tc, a_pmi_server_that_is_none, 0, ARRAY_LEN(servers));
    tcase_add_test(tc, a_pmi_line_without_end);
    tcase_add_test(tc, a_pmi_server_that_is_silent);
    tcase_add_test(tc, a_pmi_descriptor_that_is_closed);
    tcase_add_test(tc, a_pmi_server_that_has_left_ends_nobody);
    tcase_add_test(tc, ranks_of_horovodrun_meet);
    tcase_add_loop_test(tc, a_server_of_horovod_that_is_none, 0,
                        ARRAY_LEN(keepers));
    tcase_add_test(tc, no_server_of_horovod);
    tcase_add_loop_test(tc, a_child_of_a_rank_is_refused, 0,
                        ARRAY_LEN(launchers));
    return suite_run(suite);
}
