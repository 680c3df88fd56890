/* SPDX-License-Identifier: BSD-3-Clause */
/* test_boot.c - bootstraps: what the environment says, ids, and the caller's own
 * allgather. */
#include "lib/boot/boot.h"
#include "lib/net/auth.h"
#include "lib/net/net.h"
#include "lib/net/presence.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const launcher_variables[] = {
    "COLL_RANK",      "COLL_SIZE",          "COLL_ROOT",
    "COLL_ROOT_FD",   "COLL_JOB_SECRET",    "COLL_BOOTSTRAP",
    "COLL_NET_PORTS", "COLL_NET_INTERFACE", "RANK",
    "WORLD_SIZE",     "LOCAL_RANK",         "MASTER_ADDR",
    "MASTER_PORT",    "PMIX_NAMESPACE",     "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",       "HOROVOD_SIZE",       "PMI_FD",
    "HOROVOD_RANK",   "SLURM_STEP_ID"};

static void clean_environment(void)
{
    for (size_t i = 0; i < ARRAY_LEN(launcher_variables); i++)
        unsetenv(launcher_variables[i]);
}

static void says(const char *text)
{
    ck_assert_msg(strstr(coll_last_error(), text) != NULL, "no '%s' in: %s",
                  text, coll_last_error());
}

/* Open by the environment, which must fail so and say so. */
static void fails(int status, const char *text)
{
    struct coll__boot boot;

    ck_assert_int_eq(coll__boot_open_env(&boot, 1), status);
    says(text);
}

/* ---- the environment ---------------------------------------------------- */

START_TEST(no_launcher_is_one_rank)
{
    struct coll__boot boot;
    int in = 7, out = 0;

    ck_assert_int_eq(coll__boot_open_env(&boot, 1), COLL_OK);
    ck_assert_int_eq(boot.rank, 0);
    ck_assert_int_eq(boot.size, 1);
    ck_assert_str_eq(boot.ops->name, "single");
    ck_assert_int_eq(coll__boot_places(&boot, &in, sizeof(in), &out), 0);
    ck_assert_int_eq(out, 7);
    coll__boot_close(&boot);
}
END_TEST

/* _i: the variable that is left out */
START_TEST(half_of_collruns_set_names_the_missing_one)
{
    static const char *const set[][2] = {{"COLL_RANK", "0"},
                                         {"COLL_SIZE", "2"},
                                         {"COLL_ROOT", "127.0.0.1:9"},
                                         {"COLL_JOB_SECRET", "s"}};
    char want[64];

    for (int i = 0; i < (int)ARRAY_LEN(set); i++)
        if (i != _i)
            setenv(set[i][0], set[i][1], 1);
    snprintf(want, sizeof(want), "%s is not", set[_i][0]);
    fails(COLL_ERR_BOOTSTRAP, want);
}
END_TEST

START_TEST(half_of_torchruns_set_names_the_missing_one)
{
    static const char *const set[][2] = {{"RANK", "0"},
                                         {"WORLD_SIZE", "2"},
                                         {"MASTER_ADDR", "127.0.0.1"},
                                         {"MASTER_PORT", "29500"}};
    char want[64];

    for (int i = 0; i < (int)ARRAY_LEN(set); i++)
        if (i != _i)
            setenv(set[i][0], set[i][1], 1);
    snprintf(want, sizeof(want), "%s is not", set[_i][0]);
    fails(COLL_ERR_BOOTSTRAP, want);
}
END_TEST

START_TEST(a_local_rank_alone_is_no_single_rank)
{
    setenv("LOCAL_RANK", "1", 1);
    fails(COLL_ERR_BOOTSTRAP, "LOCAL_RANK is set but RANK is not");
}
END_TEST

START_TEST(a_job_scripts_master_addr_describes_nothing)
{
    struct coll__boot boot;

    setenv("MASTER_ADDR", "node1", 1);
    setenv("MASTER_PORT", "29500", 1);
    ck_assert_int_eq(coll__boot_open_env(&boot, 1), COLL_OK);
    coll__boot_close(&boot);
}
END_TEST

START_TEST(an_unknown_bootstrap_lists_the_known)
{
    setenv("COLL_BOOTSTRAP", "pigeon", 1);
    fails(COLL_ERR_INVALID, "it must be one of collrun, ");
    says("torchrun, horovod, slurm, single");
}
END_TEST

START_TEST(a_forced_bootstrap_that_is_not_there_is_an_error)
{
    setenv("COLL_BOOTSTRAP", "torchrun", 1);
    fails(COLL_ERR_BOOTSTRAP, "RANK, WORLD_SIZE, MASTER_ADDR");
}
END_TEST

START_TEST(a_foreign_launcher_is_no_single_rank)
{
    struct coll__boot boot;

    setenv("PMI_SIZE", "4", 1);
    fails(COLL_ERR_BOOTSTRAP, "PMI_SIZE=4");
    setenv("COLL_BOOTSTRAP", "single", 1);
    ck_assert_int_eq(coll__boot_open_env(&boot, 1), COLL_OK);
    coll__boot_close(&boot);
}
END_TEST

static void set_collrun(const char *rank, const char *size, const char *root)
{
    setenv("COLL_RANK", rank, 1);
    setenv("COLL_SIZE", size, 1);
    setenv("COLL_ROOT", root, 1);
    setenv("COLL_JOB_SECRET", "s", 1);
}

START_TEST(bad_values_are_named)
{
    set_collrun("2", "2", "127.0.0.1:9");
    fails(COLL_ERR_BOOTSTRAP, "COLL_RANK=2 of COLL_SIZE=2");
    set_collrun("one", "2", "127.0.0.1:9");
    fails(COLL_ERR_BOOTSTRAP, "COLL_RANK=one");
    set_collrun("1", "2", "127.0.0.1");
    fails(COLL_ERR_BOOTSTRAP, "HOST:PORT");
    set_collrun("1", "2", "::1:80");
    fails(COLL_ERR_BOOTSTRAP, "HOST:PORT");
    set_collrun("1", "2", "127.0.0.1:70000");
    fails(COLL_ERR_BOOTSTRAP, "HOST:PORT");
}
END_TEST

START_TEST(a_port_in_use_is_said)
{
    struct coll__addr addr;
    char root[COLL__ADDR_TEXT];
    int fd = world_listen(&addr);

    coll__net_text(&addr, root);
    set_collrun("0", "2", root);
    fails(COLL_ERR_SYSTEM, "it is in use by another program");
    close(fd);
}
END_TEST

/* ---- torchrun's jobs beside each other ----------------------------------- */

static void set_torchrun(const char *rank, int port)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", port);
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", text, 1);
    setenv("TORCHELASTIC_RUN_ID", "none", 1); /* as torchrun calls most jobs */
}

static pid_t start_torchrun(const char *rank, int port, double timeout)
{
    struct coll__boot boot;
    pid_t pid = fork();
    int status, mine = atoi(rank), all[2];

    if (pid)
        return pid;
    alarm(60);
    set_torchrun(rank, port);
    if (coll__boot_open_env(&boot, timeout))
        exit(1);
    status = coll__boot_places(&boot, &mine, sizeof(mine), all);
    coll__boot_close(&boot);
    exit(status || all[0] != 0 || all[mine] != mine ? 2 : 0);
}

static int end_of(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The ports of two jobs overlap: rank 0 of the first listens where the second
 * looks first, since the store of the second is at the port before. */
START_TEST(jobs_with_neighbouring_ports_do_not_mix)
{
    struct coll__addr store;
    int fd = world_listen(&store), port = coll__net_port(&store);
    pid_t first[2], second;

    if (port > 65000) {
        close(fd);
        return;
    }
    first[0] = start_torchrun("0", port - 1, 30);
    world_nap(0.3);
    second = start_torchrun("1", port, 1.5); /* its rank 0 never comes */
    ck_assert_int_eq(end_of(second), 1);
    first[1] = start_torchrun("1", port - 1, 30);
    ck_assert_int_eq(end_of(first[0]), 0);
    ck_assert_int_eq(end_of(first[1]), 0);
    close(fd);
}
END_TEST

/* Of two agents, the one whose rank failed has started its ranks once more than the
 * other has, which ended its own for the new round. */
START_TEST(agents_that_count_their_restarts_apart_make_one_job)
{
    struct coll__addr store;
    int fd = world_listen(&store), port = coll__net_port(&store);
    pid_t ranks[2];

    setenv("TORCHELASTIC_RESTART_COUNT", "0", 1);
    ranks[0] = start_torchrun("0", port, 30);
    setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
    ranks[1] = start_torchrun("1", port, 30);
    ck_assert_int_eq(end_of(ranks[0]), 0);
    ck_assert_int_eq(end_of(ranks[1]), 0);
    close(fd);
}
END_TEST

START_TEST(another_secret_is_named_as_what_keeps_a_rank_out)
{
    struct coll__addr store;
    struct coll__boot boot;
    int fd = world_listen(&store), port = coll__net_port(&store);
    pid_t root;

    setenv("COLL_JOB_SECRET", "one", 1);
    root = start_torchrun("0", port, 60);
    world_nap(0.3);
    set_torchrun("1", port);
    setenv("COLL_JOB_SECRET", "another", 1);
    ck_assert_int_eq(coll__boot_open_env(&boot, patient(2)),
                     COLL_ERR_BOOTSTRAP);
    says("knows no such job");
    says("is rank 0 running? and ");
    says("COLL_JOB_SECRET the same on every rank?");
    kill(root, SIGKILL);
    ck_assert_int_eq(end_of(root), -1);
    close(fd);
}
END_TEST

/* ---- ids and the caller's own allgather ---------------------------------- */

START_TEST(an_id_serves_once_and_only_rank_0s_process)
{
    struct coll_unique_id id, zero = {{0}};
    struct coll__boot boot = {.timeout = 1};

    setenv("COLL_NET_INTERFACE", "lo", 1);
    ck_assert_int_eq(coll_get_unique_id(&id), COLL_OK);
    ck_assert_int_eq(coll_get_unique_id(NULL), COLL_ERR_INVALID);
    ck_assert_int_eq(coll__boot_open_id(&boot, &id, 1, 0), COLL_OK);
    coll__boot_close(&boot);
    ck_assert_int_eq(coll__boot_open_id(&boot, &id, 1, 0), COLL_ERR_INVALID);
    says("one group only");
    ck_assert_int_eq(coll__boot_open_id(&boot, &zero, 2, 0), COLL_ERR_INVALID);
    says("no unique id");
    ck_assert_int_eq(coll__boot_open_id(&boot, &id, 2, 2), COLL_ERR_INVALID);
    says("rank 2 of 2");
}
END_TEST

START_TEST(an_unused_id_is_given_back)
{
    struct coll_unique_id id, zero = {{0}};
    struct coll__boot boot = {.timeout = 1};
    int n;

    setenv("COLL_NET_INTERFACE", "lo", 1);
    ck_assert_int_eq(coll_get_unique_id(&id), COLL_OK);
    n = world_n_fds();
    ck_assert_int_eq(coll_unique_id_free(&id), COLL_OK);
    ck_assert_int_eq(world_n_fds(), n - 1);
    ck_assert_int_eq(coll_unique_id_free(&id), COLL_OK);
    ck_assert_int_eq(world_n_fds(), n - 1);
    ck_assert_int_eq(coll__boot_open_id(&boot, &id, 2, 0), COLL_ERR_INVALID);
    ck_assert_int_eq(coll_unique_id_free(NULL), COLL_ERR_INVALID);
    ck_assert_int_eq(coll_unique_id_free(&zero), COLL_ERR_INVALID);
    says("no unique id");
}
END_TEST

static struct {
    pthread_barrier_t barrier;
    char blocks[8][256];
    int has_clone; /* rank 3 is where rank 0 is not, though their ids are the same */
} board;

/* Change the token at the end of rank 0's card; the one byte of an answer stays. */
static void change_presence(char *block, size_t len)
{
    if (len > COLL__PRESENCE_BYTES)
        block[len - 1] ^= 1;
}

static int board_allgather(void *arg, const void *in, void *out, size_t len)
{
    int rank = *(int *)arg;

    memcpy((char *)board.blocks + len * (size_t)rank, in, len);
    pthread_barrier_wait(&board.barrier);
    memcpy(out, board.blocks, 4 * len);
    if (board.has_clone && rank == 3)
        change_presence(out, len);
    pthread_barrier_wait(&board.barrier);
    return 0;
}

static void *join_oob(void *arg)
{
    struct coll__boot *boot = arg;
    int rank = boot->rank;
    struct coll_oob oob = {sizeof(oob), rank, 4, board_allgather, &rank};
    char all[4];
    int status = coll__boot_open_oob(boot, &oob, 1);

    if (!status)
        status = coll__boot_places(boot, &(char){(char)rank}, 1, all);
    for (int r = 0; r < 4 && !status; r++)
        status = all[r] != r;
    return status ? arg : NULL;
}

/* _i: is one rank on a clone of the others' host? */
START_TEST(the_callers_allgather_spreads_one_secret)
{
    struct coll__boot boots[4];
    pthread_t threads[4];
    void *bad;

    pthread_barrier_init(&board.barrier, NULL, 4);
    board.has_clone = _i;
    for (int r = 0; r < 4; r++) {
        boots[r].rank = r;
        pthread_create(&threads[r], NULL, join_oob, &boots[r]);
    }
    for (int r = 0; r < 4; r++) {
        pthread_join(threads[r], &bad);
        ck_assert_ptr_null(bad);
    }
    for (int r = 0; r < 4; r++) {
        ck_assert_mem_eq(boots[r].secret, boots[0].secret, COLL__SECRET_BYTES);
        ck_assert_int_eq(boots[r].is_one_host, !_i);
    }
    for (int r = 0; r < 4; r++)
        coll__boot_close(&boots[r]);
}
END_TEST

static int refuse(void *arg, const void *in, void *out, size_t len)
{
    (void)arg, (void)in, (void)out, (void)len;
    return 5;
}

START_TEST(bad_oob_is_refused)
{
    struct coll_oob oob = {sizeof(oob), 0, 2, refuse, NULL};
    struct coll__boot boot;

    ck_assert_int_eq(coll__boot_open_oob(&boot, &oob, 1), COLL_ERR_BOOTSTRAP);
    says("returned 5 instead of 0");
    oob.allgather = NULL;
    ck_assert_int_eq(coll__boot_open_oob(&boot, &oob, 1), COLL_ERR_INVALID);
    oob = (struct coll_oob){sizeof(oob), 2, 2, refuse, NULL};
    ck_assert_int_eq(coll__boot_open_oob(&boot, &oob, 1), COLL_ERR_INVALID);
    oob.size = 3;
    ck_assert_int_eq(coll__boot_open_oob(&boot, &oob, 1), COLL_ERR_INVALID);
}
END_TEST

static int lose(void *arg, const void *in, void *out, size_t len)
{
    (void)arg, (void)in;
    memset(out, 0, 2 * len);
    return 0;
}

START_TEST(an_allgather_that_loses_bytes_is_found_out)
{
    struct coll_oob oob = {sizeof(oob), 1, 2, lose, NULL};
    struct coll__boot boot;
    char all[2];

    ck_assert_int_eq(coll__boot_open_oob(&boot, &oob, 1), COLL_OK);
    ck_assert_int_eq(coll__boot_places(&boot, "x", 1, all), COLL_ERR_BOOTSTRAP);
    says("other bytes where rank 1's belong");
    coll__boot_close(&boot);
}
END_TEST

static TCase *new_case(Suite *suite, const char *name)
{
    TCase *tc = suite_case(suite, name, 60);

    tcase_add_checked_fixture(tc, clean_environment, NULL);
    return tc;
}

static Suite *boot_suite(void)
{
    Suite *suite = suite_create("boot");
    TCase *tc = new_case(suite, "environment");

    tcase_add_test(tc, no_launcher_is_one_rank);
    tcase_add_loop_test(tc, half_of_collruns_set_names_the_missing_one, 0, 4);
    tcase_add_loop_test(tc, half_of_torchruns_set_names_the_missing_one, 0, 4);
    tcase_add_test(tc, a_local_rank_alone_is_no_single_rank);
    tcase_add_test(tc, a_job_scripts_master_addr_describes_nothing);
    tcase_add_test(tc, an_unknown_bootstrap_lists_the_known);
    tcase_add_test(tc, a_forced_bootstrap_that_is_not_there_is_an_error);
    tcase_add_test(tc, a_foreign_launcher_is_no_single_rank);
    tcase_add_test(tc, bad_values_are_named);
    tcase_add_test(tc, a_port_in_use_is_said);
    tc = new_case(suite, "torchrun");
    tcase_add_test(tc, jobs_with_neighbouring_ports_do_not_mix);
    tcase_add_test(tc, agents_that_count_their_restarts_apart_make_one_job);
    tcase_add_test(tc, another_secret_is_named_as_what_keeps_a_rank_out);
    tc = new_case(suite, "id_and_oob");
    tcase_add_test(tc, an_id_serves_once_and_only_rank_0s_process);
    tcase_add_test(tc, an_unused_id_is_given_back);
    tcase_add_loop_test(tc, the_callers_allgather_spreads_one_secret, 0, 2);
    tcase_add_test(tc, bad_oob_is_refused);
    tcase_add_test(tc, an_allgather_that_loses_bytes_is_found_out);
    return suite;
}

int main(void)
{
    return suite_run(boot_suite());
}
