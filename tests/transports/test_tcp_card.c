/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tcp_card.c - what a rank makes of the cards by which ranks meet over TCP:
 * those of the others are written here, as other machines would write them.
 */
#include "lib/util/util.h"
#include "transports/tcp.h"
#include "tests/support/suite.h"

#include <byteswap.h>
#include <check.h>
#include <string.h>

#define RANKS 3

/* What the card of the last rank is made to be. */
enum kind { ALIKE, SWAPPED, FAILED, TOO_MANY, TOO_ALIKE, TOO_MANY_RAILS };

static int gather(void *arg, const void *in, size_t len, void *out)
{
    struct tcp_card *cards = out, *other = &cards[RANKS - 1];
    enum kind kind = *(const enum kind *)arg;

    ck_assert_uint_eq(len, sizeof(*cards));
    for (int r = 0; r < RANKS; r++)
        memcpy(&cards[r], in, len);
    if (kind == SWAPPED) {
        other->order = bswap_32(other->order);
        other->n_addrs = (int32_t)bswap_32((uint32_t)other->n_addrs);
    }
    if (kind == FAILED)
        other->status = COLL_ERR_SYSTEM;
    if (kind == TOO_MANY)
        other->n_addrs = COLL__MAX_ADDRS + 1;
    if (kind == TOO_ALIKE)
        other->n_alike = other->n_addrs + 1;
    if (kind == TOO_MANY_RAILS)
        other->n_rails = TCP_RAILS + 1;
    return COLL_OK;
}

/* By the kind: the status, and words of the sentence. */
static const struct {
    int status;
    const char *says;
} ends[] = {
    [ALIKE] = {COLL_OK, ""},
    [SWAPPED] = {COLL_ERR_TRANSPORT,
                 "rank 2 is on a machine of another byte order"},
    [FAILED] = {COLL_ERR_SYSTEM, "rank 2 cannot be connected"},
    [TOO_MANY] = {COLL_ERR_INTERNAL, ""},
    [TOO_ALIKE] = {COLL_ERR_INTERNAL, ""},
    [TOO_MANY_RAILS] = {COLL_ERR_INTERNAL, ""},
};

/* _i: the kind.  All three are on one host, so that only the loopback is asked. */
START_TEST(what_a_card_says_is_judged_before_it_is_used)
{
    static const unsigned char secret[32] = {1};
    struct coll__peer peers[RANKS] = {{.host = 0}};
    enum kind kind = (enum kind)_i;
    struct coll__tp_env env = {.rank = 0,
                               .size = RANKS,
                               .peers = peers,
                               .allgather = gather,
                               .arg = &kind,
                               .timeout = 10,
                               .secret = secret};
    const struct coll__transport *ops = coll__transport_find("tcp");
    struct coll__tp *tp = NULL;

    ck_assert_int_eq(ops->open(&env, &tp), ends[_i].status);
    if (ends[_i].status)
        ck_assert_ptr_nonnull(strstr(coll_last_error(), ends[_i].says));
    else
        ops->close(tp, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp_card");
    TCase *tcase = tcase_create("tcp_card");

    tcase_add_loop_test(tcase, what_a_card_says_is_judged_before_it_is_used, 0,
                        (int)ARRAY_LEN(ends));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
