/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rendezvous.c - ranks meet over TCP; who is missing, double, or not one
 * of them. */
#include "lib/net/auth.h"
#include "lib/net/reactor.h"
#include "lib/net/tree.h"
#include "lib/boot/rendezvous.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT patient(20)

/* ---- the rendezvous ----------------------------------------------------- */

/* A job of threads; each may be given its own idea of it. */
struct job {
    int size;
    struct coll__rendezvous_spec spec[WORLD_MAX];
    int status[WORLD_MAX];
    char error[WORLD_MAX][512];
    struct coll__boot boot[WORLD_MAX];
    double timeout;
};

struct member {
    struct job *job;
    int index;
};

static void *join(void *arg)
{
    struct member *m = arg;
    struct job *job = m->job;
    struct coll__boot *boot = &job->boot[m->index];
    int all[WORLD_MAX];
    int parent = coll__tree_parent(m->index, job->spec[m->index].size);

    *boot = (struct coll__boot){.timeout = job->timeout};
    job->status[m->index] = coll__rendezvous_open(boot, &job->spec[m->index]);
    if (!job->status[m->index])
        job->status[m->index] =
            coll__rendezvous_places(boot, &m->index, sizeof(int), all);
    snprintf(job->error[m->index], sizeof(job->error[0]), "%s",
             coll_last_error());
    if (!job->status[m->index] && all[parent] != parent)
        job->status[m->index] = COLL_ERR_INTERNAL;
    return NULL;
}

/* Prepare a job of `size` ranks whose rank 0 listens already. */
static struct job *new_job(int size)
{
    struct job *job = calloc(1, sizeof(*job));
    struct coll__addr addr;

    job->size = size;
    job->timeout = TIMEOUT;
    for (int r = 0; r < size; r++) {
        struct coll__rendezvous_spec *spec = &job->spec[r];

        spec->rank = r;
        spec->size = size;
        spec->remedy = "try better";
        spec->listen_fd = -1;
        spec->n_addrs = spec->n_ports = 1;
        memset(spec->secret, 5, sizeof(spec->secret));
    }
    job->spec[0].listen_fd = world_listen(&addr);
    for (int r = 0; r < size; r++)
        job->spec[r].addrs[0] = addr;
    return job;
}

/* Run the first n members, or all; the last but one comes when the last one has
 * ended, where it is so told. */
static void run_members(struct job *job, int n, int is_last_first)
{
    struct member members[WORLD_MAX];
    pthread_t threads[WORLD_MAX];
    int late = is_last_first ? n - 2 : -1;

    for (int r = 0; r < n; r++) {
        members[r] = (struct member){job, r};
        if (r != late)
            ck_assert_int_eq(
                pthread_create(&threads[r], NULL, join, &members[r]), 0);
    }
    if (is_last_first) {
        pthread_join(threads[n - 1], NULL);
        join(&members[late]);
    }
    for (int r = 0; r < n - is_last_first; r++)
        if (r != late)
            pthread_join(threads[r], NULL);
    for (int r = 0; r < n; r++)
        if (!job->status[r])
            coll__rendezvous_close(&job->boot[r]);
}

static void run_job(struct job *job, int n) { run_members(job, n, 0); }

static void expect(struct job *job, int index, const char *text)
{
    ck_assert_int_eq(job->status[index], COLL_ERR_BOOTSTRAP);
    ck_assert_msg(strstr(job->error[index], text) != NULL, "no '%s' in: %s",
                  text, job->error[index]);
}

static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 33};

START_TEST(ranks_meet_and_share_a_fresh_secret)
{
    struct job *job = new_job(sizes[_i]);
    unsigned char secret[COLL__SECRET_BYTES];
    struct member members[WORLD_MAX];
    pthread_t threads[WORLD_MAX];

    for (int r = 0; r < job->size; r++) {
        members[r] = (struct member){job, r};
        pthread_create(&threads[r], NULL, join, &members[r]);
    }
    for (int r = 0; r < job->size; r++)
        pthread_join(threads[r], NULL);
    memcpy(secret, job->boot[0].secret, sizeof(secret));
    for (int r = 0; r < job->size; r++) {
        ck_assert_msg(!job->status[r], "rank %d: %s", r, job->error[r]);
        ck_assert_mem_eq(job->boot[r].secret, secret, sizeof(secret));
        coll__rendezvous_close(&job->boot[r]);
    }
    ck_assert_mem_ne(secret, job->spec[0].secret, sizeof(secret));
    free(job);
}
END_TEST

/* Rank 0 sends those away that it has no seat for; they come again. */
START_TEST(few_seats_are_enough)
{
    struct job *job = new_job(sizes[_i]);

    job->spec[0].n_seats = 2;
    run_job(job, job->size);
    for (int r = 0; r < job->size; r++)
        ck_assert_msg(!job->status[r], "rank %d: %s", r, job->error[r]);
    free(job);
}
END_TEST

static atomic_int n_told;

static void told(void *arg, int status, const char *text)
{
    (void)arg;
    atomic_fetch_add(&n_told, status == COLL_ERR_PEER &&
                                  !strcmp(text, "the bridge is out"));
}

/* A job of five that has formed, with one seat; the first to tell is noted. */
static struct job *formed_job(void)
{
    struct job *job = new_job(5);
    struct member members[5];
    pthread_t threads[5];

    job->spec[0].n_seats = 1;
    for (int r = 0; r < 5; r++) {
        members[r] = (struct member){job, r};
        pthread_create(&threads[r], NULL, join, &members[r]);
    }
    for (int r = 0; r < 5; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < 5; r++)
        ck_assert_msg(!job->status[r], "rank %d: %s", r, job->error[r]);
    coll__reactor_lock();
    job->boot[0].news.failed = told;
    coll__reactor_unlock();
    return job;
}

static void end_told_job(struct job *job)
{
    double end = coll__now() + TIMEOUT;

    while (!n_told && coll__now() < end)
        usleep(1000);
    ck_assert_int_eq(n_told, 1);
    for (int r = 0; r < 5; r++)
        coll__rendezvous_close(&job->boot[r]);
    free(job);
}

/* While the tree is being connected, with a seat or without. */
START_TEST(any_rank_can_tell_why_it_cannot_join)
{
    struct job *job = formed_job();

    coll__rendezvous_tell(&job->boot[_i], COLL_ERR_PEER, "the bridge is out");
    end_told_job(job);
}
END_TEST

static void *tell(void *arg)
{
    coll__rendezvous_tell(arg, COLL_ERR_PEER, "the bridge is out");
    return NULL;
}

START_TEST(all_ranks_may_tell_at_once)
{
    struct job *job = formed_job();
    pthread_t threads[5];

    for (int r = 0; r < 5; r++)
        pthread_create(&threads[r], NULL, tell, &job->boot[r]);
    for (int r = 0; r < 5; r++)
        pthread_join(threads[r], NULL);
    end_told_job(job);
}
END_TEST

/* What is left of a deadline is no answer: it may be less than nothing. */
START_TEST(the_deadline_is_said_as_it_was_given)
{
    struct job *job = new_job(2);

    job->timeout = 1e-9;
    run_job(job, 1);
    expect(job, 0, "rank 1 did not join within 1e-09 s");
    free(job);
}
END_TEST

START_TEST(a_rank_that_does_not_come_is_named)
{
    struct job *job = new_job(4);

    job->timeout = 2;
    run_job(job, 3); /* all but rank 3 */
    for (int r = 0; r < 3; r++)
        expect(job, r, "rank 3 did not join within 2 s");
    free(job);
}
END_TEST

START_TEST(two_processes_of_one_rank_are_an_error)
{
    struct job *job = new_job(4);

    job->spec[3].rank = 2;
    run_job(job, 4);
    expect(job, 0, "two processes came as rank 2");
    expect(job, 2, "two processes came as rank 2");
    expect(job, 3, "two processes came as rank 2");
    free(job);
}
END_TEST

START_TEST(another_size_is_an_error)
{
    struct job *job = new_job(3);

    job->spec[2].size = 5;
    run_job(job, 3);
    expect(job, 0, "says the job has 5 ranks, rank 0 says 3");
    expect(job, 2, "says the job has 5 ranks, rank 0 says 3");
    free(job);
}
END_TEST

START_TEST(a_wrong_secret_is_turned_away_and_the_job_forms)
{
    struct job *job = new_job(5);

    job->spec[4].rank = 1; /* a stranger who wants to be rank 1 */
    memset(job->spec[4].secret, 6, COLL__SECRET_BYTES);
    for (int r = 0; r < 4; r++)
        job->spec[r].size = 4;
    run_members(job, 5, 1); /* a formed job would not be there to refuse it */
    for (int r = 0; r < 4; r++)
        ck_assert_msg(!job->status[r], "rank %d: %s", r, job->error[r]);
    expect(job, 4, "rejected rank");
    free(job);
}
END_TEST

START_TEST(no_rank_0_is_an_error_at_the_deadline)
{
    struct job *job = new_job(2);

    job->timeout = 0.4;
    close(job->spec[0].listen_fd);
    run_job(job, 0);
    job->spec[0] = job->spec[1]; /* rank 1 alone */
    run_job(job, 1);
    expect(job, 0, "rank 1 could not reach rank 0 within 0.4 s");
    free(job);
}
END_TEST

/* What may arrive at a listening port from anywhere. */
struct enemy {
    struct coll__addr at;
    atomic_int is_over;
};

static void *attack(void *arg)
{
    struct enemy *enemy = arg;
    unsigned char bytes[600];
    int held[20], n_held = 0;

    for (unsigned i = 0; !atomic_load(&enemy->is_over); i++) {
        int fd = coll__net_connect(&enemy->at, coll__now() + 1);

        if (fd < 0)
            continue;
        coll__auth_random(bytes, sizeof(bytes));
        if (i % 4 == 1) /* the right beginning, then a wrong group */
            memcpy(bytes, "COLLv001", 8);
        if (i % 4 == 2)
            memcpy(bytes, "GET / HTTP/1.1\r\n\r\n", 18);
        if (i % 4 != 3) /* or nothing at all */
            coll__net_write(fd, bytes, 1 + i * 37 % sizeof(bytes),
                            coll__now() + 1);
        if (i % 5 || n_held == 20)
            close(fd);
        else
            held[n_held++] = fd;
    }
    while (n_held)
        close(held[--n_held]);
    return NULL;
}

static void ignore_log(enum coll_log_level level, const char *part,
                       const char *text, void *arg)
{
    (void)level, (void)part, (void)text, (void)arg;
}

START_TEST(hostile_bytes_do_no_harm)
{
    struct job *job = new_job(6);
    struct enemy enemy = {.at = job->spec[0].addrs[0]};
    pthread_t threads[3];

    coll_set_log_handler(ignore_log, NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, attack, &enemy);
    usleep(100000);
    run_job(job, 6);
    atomic_store(&enemy.is_over, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int r = 0; r < 6; r++)
        ck_assert_msg(!job->status[r], "rank %d: %s", r, job->error[r]);
    free(job);
}
END_TEST

/* A stranger that knows the group's public name, but not its secret. */
START_TEST(replayed_and_guessed_proofs_are_dropped)
{
    struct job *job = new_job(2);
    unsigned char hello[256] = "COLLv001", answer[68], proof[32];
    struct coll__addr at = job->spec[0].addrs[0];
    struct member zero = {job, 0}, one = {job, 1};
    pthread_t threads[2];
    int fd;

    coll_set_log_handler(ignore_log, NULL);
    pthread_create(&threads[0], NULL, join, &zero);
    fd = coll__net_connect(&at, coll__now() + TIMEOUT);
    ck_assert_int_ge(fd, 0);
    coll__auth_group(job->spec[0].secret, hello + 8);
    hello[28] = 1; /* from rank 1 */
    hello[36] = 2; /* of 2 */
    ck_assert_int_eq(coll__net_write(fd, hello, 80, coll__now() + TIMEOUT), 0);
    ck_assert_int_eq(
        coll__net_read(fd, answer, sizeof(answer), coll__now() + TIMEOUT), 0);
    ck_assert_int_eq(answer[0], 0);            /* "prove it" */
    memcpy(proof, answer + 36, sizeof(proof)); /* its own proof, sent back */
    ck_assert_int_eq(coll__net_write(fd, proof, 32, coll__now() + TIMEOUT), 0);
    ck_assert_int_eq(coll__net_read(fd, answer, 1, coll__now() + TIMEOUT),
                     COLL_ERR_PEER);
    close(fd);
    pthread_create(&threads[1], NULL, join, &one);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    ck_assert_msg(!job->status[0], "%s", job->error[0]);
    ck_assert_msg(!job->status[1], "%s", job->error[1]);
    coll__rendezvous_close(&job->boot[0]);
    coll__rendezvous_close(&job->boot[1]);
    free(job);
}
END_TEST

START_TEST(no_descriptor_or_thread_is_left)
{
    struct job *job = new_job(2);
    int n_fds, n_threads;

    run_job(job, 2); /* what is made once is made now */
    free(job);
    n_fds = world_n_fds();
    n_threads = world_n_threads();
    for (int i = 0; i < 5; i++) {
        job = new_job(5);
        run_job(job, 5);
        free(job);
        job = new_job(4);
        job->spec[3].rank = 2;
        run_job(job, 4);
        free(job);
    }
    ck_assert_int_eq(world_n_fds(), n_fds);
    ck_assert_int_le(world_settled_threads(n_threads), n_threads);
}
END_TEST

static Suite *rendezvous_suite(void)
{
    Suite *suite = suite_create("rendezvous");
    TCase *tc = suite_case(suite, "rendezvous", 60);

    tcase_add_loop_test(tc, ranks_meet_and_share_a_fresh_secret, 0,
                        (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(tc, few_seats_are_enough, 0, (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(tc, any_rank_can_tell_why_it_cannot_join, 1, 5);
    tcase_add_loop_test(tc, all_ranks_may_tell_at_once, 0, 10);
    tcase_add_test(tc, a_rank_that_does_not_come_is_named);
    tcase_add_test(tc, the_deadline_is_said_as_it_was_given);
    tcase_add_test(tc, two_processes_of_one_rank_are_an_error);
    tcase_add_test(tc, another_size_is_an_error);
    tcase_add_test(tc, a_wrong_secret_is_turned_away_and_the_job_forms);
    tcase_add_test(tc, no_rank_0_is_an_error_at_the_deadline);
    tcase_add_test(tc, hostile_bytes_do_no_harm);
    tcase_add_test(tc, replayed_and_guessed_proofs_are_dropped);
    tcase_add_test(tc, no_descriptor_or_thread_is_left);
    return suite;
}

int main(void)
{
    return suite_run(rendezvous_suite());
}
