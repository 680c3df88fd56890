/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cma.c - reading the memory of another process: a forked one, whose copy
 * of a buffer differs from this one's, a dead one, one that may not be read.
 */
#include "include/coll/coll.h"
#include "lib/util/util.h"
#include "tests/support/forbid.h"
#include "tests/support/suite.h"
#include "transports/cma.h"

#include <check.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define MRELEASE 448 /* process_mrelease(), of kernel 5.15 */

/* Another process, which offers itself and then does nothing. */
struct peer {
    pid_t pid;
    struct coll__cma_token token;
};

static void *map(size_t len, int flags)
{
    void *at =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

/* Start one; prepare(arg) runs in it first. */
static struct peer start_peer(void (*prepare)(void *arg), void *arg)
{
    struct coll__cma_token *token = map(sizeof(*token), MAP_SHARED);
    struct peer peer;
    int ends[2];
    char byte;

    ck_assert_int_eq(pipe(ends), 0);
    peer.pid = fork();
    ck_assert_int_ge(peer.pid, 0);
    if (!peer.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (prepare)
            prepare(arg);
        coll__cma_offer(token);
        if (write(ends[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq((int)read(ends[0], &byte, 1), 1);
    close(ends[0]);
    peer.token = *token;
    munmap(token, sizeof(*token));
    return peer;
}

static void end_peer(const struct peer *peer)
{
    kill(peer->pid, SIGKILL);
    ck_assert_int_eq(waitpid(peer->pid, NULL, 0), peer->pid);
}

/* Run work() in a process of its own, since it takes rights away. */
static void in_a_child(int (*work)(void))
{
    pid_t pid = fork();
    int status;

    ck_assert_int_ge(pid, 0);
    if (!pid)
        _exit(work());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* Return 1, and say where, unless `is` holds; for children. */
#define EXPECT(is)                                                             \
    do {                                                                       \
        if (!(is)) {                                                           \
            fprintf(stderr, "line %d: %s\n", __LINE__, #is);                   \
            return 1;                                                          \
        }                                                                      \
    } while (0)

static void ck_refused(const struct coll__cma_token *token, const char *words)
{
    char why[CMA_WHY_BYTES] = "";

    ck_assert_int_eq(coll__cma_probe(token), COLL_ERR_UNSUPPORTED);
    ck_assert_int_eq(coll__cma_probe_why(token, why, sizeof(why)),
                     COLL_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(why, words) != NULL, "'%s' is not in: %s", words, why);
}

/* ---- reading ------------------------------------------------------------ */

struct span {
    unsigned char *at;
    size_t len;
};

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + 1);
}

static void fill_span(void *arg)
{
    struct span *span = arg;

    for (size_t i = 0; i < span->len; i++)
        span->at[i] = byte_at(i);
}

/* Read len bytes from `offset` on; what lies round the target stays. */
static void ck_read(const struct peer *peer, const struct span *span,
                    size_t offset, size_t len)
{
    unsigned char *got = malloc(len + 2);

    ck_assert_ptr_nonnull(got);
    memset(got, 0, len + 2);
    ck_assert_int_eq(coll__cma_read(peer->pid, got + 1, span->at + offset, len),
                     COLL_OK);
    for (size_t i = 0; i < len; i++)
        if (got[i + 1] != byte_at(offset + i))
            ck_abort_msg("byte %zu of %zu from %zu is wrong", i, len, offset);
    ck_assert_int_eq(got[0], 0);
    ck_assert_int_eq(got[len + 1], 0);
    free(got);
}

START_TEST(reads_every_length_and_alignment)
{
    static const size_t lens[] = {0, 1, 7, 63, 4095, 4096, 4097, 70001};
    static const size_t offsets[] = {0, 1, 4090, 4096};
    struct span span = {map(80000, MAP_PRIVATE), 80000};
    struct peer peer = start_peer(fill_span, &span);

    ck_assert_int_eq(coll__cma_probe(&peer.token), COLL_OK);
    for (size_t l = 0; l < ARRAY_LEN(lens); l++)
        for (size_t o = 0; o < ARRAY_LEN(offsets); o++)
            ck_read(&peer, &span, offsets[o], lens[l]);
    end_peer(&peer);
}
END_TEST

START_TEST(reads_many_pages_at_once)
{
    struct span span = {map((size_t)64 << 20, MAP_PRIVATE), (size_t)64 << 20};
    struct peer peer = start_peer(fill_span, &span);

    ck_read(&peer, &span, 0, span.len);
    end_peer(&peer);
}
END_TEST

START_TEST(a_dead_process_is_an_error_of_the_peer)
{
    struct span span = {map(4096, MAP_PRIVATE), 4096};
    struct peer peer = start_peer(fill_span, &span);
    unsigned char got[16];

    end_peer(&peer);
    ck_assert_int_eq(coll__cma_read(peer.pid, got, span.at, sizeof(got)),
                     COLL_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "ended"));
    ck_refused(&peer.token, "there is no process");
}
END_TEST

START_TEST(a_zombie_is_an_error_of_the_peer)
{
    struct span span = {map(4096, MAP_PRIVATE), 4096};
    struct peer peer = start_peer(fill_span, &span);
    unsigned char got[16];
    siginfo_t info;

    kill(peer.pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)peer.pid, &info, WEXITED | WNOWAIT),
                     0);
    ck_assert_int_eq(coll__cma_read(peer.pid, got, span.at, sizeof(got)),
                     COLL_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "ended"));
    end_peer(&peer);
}
END_TEST

static void unmap_second_page(void *arg)
{
    munmap((unsigned char *)arg + 4096, 4096);
}

START_TEST(memory_that_is_gone_is_named)
{
    unsigned char *at = map(8192, MAP_PRIVATE), got[4096];
    struct peer peer = start_peer(unmap_second_page, at);

    ck_assert_int_eq(coll__cma_read(peer.pid, got, at + 4096, 16),
                     COLL_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "were freed"));
    /* the kernel gives the first half, and no error, at first */
    ck_assert_int_eq(coll__cma_read(peer.pid, got, at + 2048, 4096),
                     COLL_ERR_SYSTEM);
    ck_assert_int_eq(coll__cma_read(peer.pid, got, at, 4096), COLL_OK);
    end_peer(&peer);
}
END_TEST

/* Kill it, and have it stand still on its way out: its memory is there, or was taken
 * away by what the kernel does where memory runs out.  0, where that cannot be. */
static int reap_early(const struct peer *peer)
{
    int fd, status, rc;

    if (ptrace(PTRACE_SEIZE, peer->pid, NULL, PTRACE_O_TRACEEXIT))
        return 0;
    ck_assert_int_eq(kill(peer->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(peer->pid, &status, 0), peer->pid);
    if (!WIFSTOPPED(status)) /* it depends on the kernel */
        return 0;
    fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
    ck_assert_int_ge(fd, 0);
    rc = (int)syscall(MRELEASE, fd, 0);
    close(fd);
    return rc == 0;
}

START_TEST(who_is_being_killed_is_an_error_of_the_peer)
{
    struct span span = {map(4096, MAP_PRIVATE), 4096};
    struct peer peer = start_peer(fill_span, &span);
    unsigned char got[16];

    if (reap_early(&peer)) {
        ck_assert_int_eq(coll__cma_read(peer.pid, got, span.at, sizeof(got)),
                         COLL_ERR_PEER);
        ck_assert_ptr_nonnull(strstr(coll_last_error(), "is being killed"));
    } else {
        printf(
            "SKIP: this kernel reaps no memory before a process has ended\n");
    }
    ptrace(PTRACE_CONT, peer.pid, NULL, NULL);
    kill(peer.pid, SIGKILL);
}
END_TEST

/* ---- who may ------------------------------------------------------------ */

START_TEST(a_wrong_secret_is_refused)
{
    struct peer peer = start_peer(NULL, NULL);

    ck_assert_int_eq(coll__cma_probe(&peer.token), COLL_OK);
    peer.token.secret[CMA_SECRET_BYTES - 1] ^= 1;
    ck_refused(&peer.token, "is not that rank");
    peer.token.addr = 16; /* never mapped */
    ck_refused(&peer.token, "is not that rank");
    end_peer(&peer);
}
END_TEST

START_TEST(a_child_has_a_secret_of_its_own)
{
    struct coll__cma_token mine;
    struct peer peer;

    ck_assert_int_eq(coll__cma_offer(&mine), COLL_OK);
    peer = start_peer(NULL, NULL);
    ck_assert_uint_eq(peer.token.addr, mine.addr);
    ck_assert_mem_ne(peer.token.secret, mine.secret, CMA_SECRET_BYTES);
    ck_assert_int_eq(coll__cma_probe(&peer.token), COLL_OK);
    ck_assert_int_eq(coll__cma_probe(&mine), COLL_OK); /* as before the fork */
    mine.pid = peer.pid; /* what another pid namespace looks like */
    ck_refused(&mine, "is not that rank");
    end_peer(&peer);
}
END_TEST

static void switch_off(void *arg)
{
    (void)arg;
    setenv("COLL_CMA", "off", 1);
}

START_TEST(off_neither_offers_nor_reads)
{
    struct peer peer = start_peer(switch_off, NULL);
    struct coll__cma_token mine;
    char why[CMA_WHY_BYTES];

    ck_assert_int_eq(peer.token.pid, 0);
    ck_refused(&peer.token, "does not offer");
    ck_assert_int_eq(coll__cma_offer(&mine), COLL_OK);
    setenv("COLL_CMA", "off", 1);
    ck_refused(&mine, "COLL_CMA is off");
    ck_assert_int_eq(coll__cma_usable(why, sizeof(why)), COLL_ERR_UNSUPPORTED);
    end_peer(&peer);
}
END_TEST

static int under_seccomp(void)
{
    struct peer peer = start_peer(NULL, NULL);
    struct coll__cma_token mine;
    char why[CMA_WHY_BYTES];
    unsigned char got;

    EXPECT(!coll__cma_probe(&peer.token));
    EXPECT(!forbid_cma());
    EXPECT(coll__cma_usable(why, sizeof(why)) == COLL_ERR_UNSUPPORTED);
    EXPECT(strstr(why, "seccomp"));
    EXPECT(coll__cma_offer(&mine) == COLL_ERR_UNSUPPORTED && !mine.pid);
    memset(why, 0, sizeof(why));
    EXPECT(coll__cma_probe_why(&peer.token, why, sizeof(why)) ==
           COLL_ERR_UNSUPPORTED);
    EXPECT(strstr(why, "seccomp"));
    EXPECT(coll__cma_read(peer.pid, &got, (void *)(uintptr_t)peer.token.addr,
                          1) == COLL_ERR_SYSTEM);
    EXPECT(strstr(coll_last_error(), "no longer lets"));
    kill(peer.pid, SIGKILL);
    return 0;
}

START_TEST(seccomp_is_named) { in_a_child(under_seccomp); }
END_TEST

static void hide(void *arg)
{
    (void)arg;
    prctl(PR_SET_DUMPABLE, 0);
}

/* As nobody, so that CAP_SYS_PTRACE does not open what is closed. */
static int as_nobody(void)
{
    struct peer open, hidden;
    char why[CMA_WHY_BYTES] = "";
    int rc;

    if (!getuid())
        EXPECT(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
    prctl(PR_SET_DUMPABLE, 1); /* a change of user has cleared it */
    open = start_peer(NULL, NULL);
    hidden = start_peer(hide, NULL);
    rc = coll__cma_probe_why(&open.token, why, sizeof(why));
    EXPECT(!rc || strstr(why, "ptrace_scope")); /* 2 and 3 refuse all */
    EXPECT(hidden.token.pid == hidden.pid);
    EXPECT(coll__cma_probe_why(&hidden.token, why, sizeof(why)) ==
           COLL_ERR_UNSUPPORTED);
    EXPECT(strstr(why, "ptrace_scope") || strstr(why, "not dumpable"));
    kill(open.pid, SIGKILL);
    kill(hidden.pid, SIGKILL);
    return 0;
}

START_TEST(a_process_that_is_not_dumpable_is_refused) { in_a_child(as_nobody); }
END_TEST

/* Where nothing may be read only the refusals could be tried. */
static int is_possible(void)
{
    char why[CMA_WHY_BYTES];

    if (!coll__cma_usable(why, sizeof(why)))
        return 1;
    printf("SKIP: %s\n", why);
    return 0;
}

int main(void)
{
    Suite *suite;
    TCase *c;

    unsetenv("COLL_CMA");
    if (!is_possible())
        return 77;
    suite = suite_create("cma");
    c = suite_case(suite, "cma", 120);
    tcase_add_test(c, reads_every_length_and_alignment);
    tcase_add_test(c, reads_many_pages_at_once);
    tcase_add_test(c, a_dead_process_is_an_error_of_the_peer);
    tcase_add_test(c, a_zombie_is_an_error_of_the_peer);
    tcase_add_test(c, who_is_being_killed_is_an_error_of_the_peer);
    tcase_add_test(c, memory_that_is_gone_is_named);
    tcase_add_test(c, a_wrong_secret_is_refused);
    tcase_add_test(c, a_child_has_a_secret_of_its_own);
    tcase_add_test(c, off_neither_offers_nor_reads);
    tcase_add_test(c, seccomp_is_named);
    tcase_add_test(c, a_process_that_is_not_dumpable_is_refused);
    return suite_run(suite);
}
