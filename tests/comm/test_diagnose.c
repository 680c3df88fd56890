/* SPDX-License-Identifier: BSD-3-Clause */
/* test_diagnose.c - the tournament in which COLL_DIAGNOSE measures links. */
#include "tests/support/suite.h"
#include "lib/comm/diagnose.h"

#include <check.h>
#include <string.h>

#define MOST 65

/* _i: the number of players. */
START_TEST(everybody_meets_everybody_once)
{
    static int met[MOST][MOST];

    memset(met, 0, sizeof(met));
    for (int round = 0; round < coll__tournament_rounds(_i); round++)
        for (int player = 0; player < _i; player++) {
            int partner = coll__tournament_partner(_i, player, round);

            ck_assert_int_lt(partner, _i);
            ck_assert_int_ne(partner, player);
            if (partner < 0)
                continue;
            ck_assert_int_eq(coll__tournament_partner(_i, partner, round),
                             player);
            met[player][partner]++;
        }
    for (int a = 0; a < _i; a++)
        for (int b = 0; b < _i; b++)
            ck_assert_int_eq(met[a][b], a != b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnose");
    TCase *c = suite_case(suite, "tournament", 60);

    tcase_add_loop_test(c, everybody_meets_everybody_once, 1, MOST + 1);
    return suite_run(suite);
}
