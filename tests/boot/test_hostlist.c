/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hostlist.c - the first host of a list as Slurm writes it. */
#include "lib/boot/hostlist.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <string.h>

static const struct {
    const char *list, *first; /* NULL: it is no list */
} lists[] = {
    {"n1", "n1"},
    {"n1,n2", "n1"},
    {"n[1-3,7],m04", "n1"},
    {"n[01-10]", "n01"},
    {"n[7,1-3].cluster.example", "n7.cluster.example"},
    {"r[0-1]c[2-3]", "r0c2"},
    {"gpu-node_3", "gpu-node_3"},
    {"10.0.0.1", "10.0.0.1"},
    {"", NULL},
    {",n1", NULL},
    {"n[", NULL},
    {"n[]", NULL},
    {"n[x]", NULL},
    {"n[-3]", NULL},
    {"n[1", NULL},
    {"n]1", NULL},
    {"n 1", NULL},
    {"n1;rm", NULL},
    {"n[1-3,a]", NULL},
};

START_TEST(the_first_of_a_list_of_hosts)
{
    char name[COLL__HOST_NAME];
    int rc = coll__hostlist_first(lists[_i].list, name, sizeof(name));

    ck_assert_int_eq(rc, lists[_i].first ? 0 : -1);
    ck_assert_str_eq(name, lists[_i].first ? lists[_i].first : "");
}
END_TEST

/* Whatever comes, nothing is written beyond the name, which is one. */
START_TEST(any_text_may_be_a_list)
{
    static const char bytes[] = "n1[],-.09a_ \n\xff;";
    unsigned seed = 7;
    char text[64], name[20];

    for (int n = 0; n < 200000; n++) {
        size_t len = (size_t)rand_r(&seed) % (sizeof(text) - 1);
        int rc;

        for (size_t i = 0; i < len; i++)
            text[i] = bytes[(size_t)rand_r(&seed) % (sizeof(bytes) - 1)];
        text[len] = '\0';
        memset(name, 'x', sizeof(name));
        rc = coll__hostlist_first(text, name, sizeof(name) - 1);
        ck_assert(name[sizeof(name) - 1] == 'x');
        ck_assert(memchr(name, '\0', sizeof(name) - 1) != NULL);
        ck_assert((rc == 0) == (name[0] != '\0'));
        ck_assert(!strpbrk(name, "[],; \n\xff"));
    }
}
END_TEST

static Suite *hostlist_suite(void)
{
    Suite *suite = suite_create("hostlist");
    TCase *tc = suite_case(suite, "hostlist", 60);

    tcase_add_loop_test(tc, the_first_of_a_list_of_hosts, 0, ARRAY_LEN(lists));
    tcase_add_test(tc, any_text_may_be_a_list);
    return suite;
}

int main(void) { return suite_run(hostlist_suite()); }
