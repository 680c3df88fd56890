/* SPDX-License-Identifier: BSD-3-Clause */
/* test_forbidden.c - where a seccomp profile forbids what ranks meet by, they say
 * so at once: who waited for the others would wait until the deadline. */
#include "lib/net/listener.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"
#include "tests/support/forbid.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void says(const char *text)
{
    ck_assert_msg(strstr(coll_last_error(), text) != NULL, "no '%s' in: %s",
                  text, coll_last_error());
}

START_TEST(a_listener_that_may_let_nobody_in_is_not_opened)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];
    struct coll__gate gate = {.kind = GATE_BOOT};

    ck_assert(!forbid_accept());
    ck_assert_int_eq(coll__reactor_get(), COLL_OK);
    coll__reactor_lock();
    coll__gate_add(&gate);
    coll__reactor_unlock();
    ck_assert_int_eq(coll__listener_open(REACH_HOST, addrs), COLL_ERR_SYSTEM);
    says("accept4");
    says("seccomp");
    coll__reactor_lock();
    coll__gate_remove(&gate);
    coll__reactor_unlock();
    coll__reactor_put();
}
END_TEST

static const struct {
    int (*forbid)(void);
    const char *name; /* what is said of it */
} calls[] = {
    {forbid_epoll, "forbids epoll"}, {forbid_send, "forbids send"},
    {forbid_recv, "forbids recv"},   {forbid_poll, "forbids poll"},
    {forbid_ppoll, "forbids ppoll"},
};

/* _i: what is forbidden */
START_TEST(a_reactor_that_may_not_wait_or_talk_does_not_start)
{
    ck_assert(!calls[_i].forbid());
    ck_assert_int_eq(coll__reactor_get(), COLL_ERR_SYSTEM);
    says(calls[_i].name);
    says("seccomp");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forbidden");
    TCase *c = tcase_create("forbidden");

    tcase_add_test(c, a_listener_that_may_let_nobody_in_is_not_opened);
    tcase_add_loop_test(c, a_reactor_that_may_not_wait_or_talk_does_not_start,
                        0, (int)ARRAY_LEN(calls));
    tcase_set_timeout(c, 20);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
