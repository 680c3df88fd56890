/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cut.c - operations in pieces: every byte goes through the slot once, and the
 * ranks cut alike. */
#include "lib/stream/cut.h"
#include "lib/type/signature.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, ROOM = 4096, SLOT = 4096 };

static const size_t lens[] = {320, 1024, SLOT};
static const size_t counts_of[] = {0, 1, 7, 64, 200};

/* A problem with counts that differ from rank to rank, and gaps. */
struct made {
    struct coll__problem pb;
    size_t numbers[4][RANKS];
};

static size_t count_of(size_t count, int a, int b)
{
    return count * (size_t)((a + 2 * b) % 3);
}

static void lay_out(struct made *m, int first, int n, int rank, int is_column)
{
    size_t at = 0;

    for (int q = 0; q < n; q++) {
        size_t count = is_column ? count_of(m->pb.count, q, rank)
                                 : count_of(m->pb.count, rank, q);

        m->numbers[first][q] = count;
        m->numbers[first + 1][q] = at;
        at += count + 2;
    }
}

static void make(struct made *m, enum coll_collective collective, int n,
                 int rank, size_t count)
{
    int is_root = rank == n - 1;

    *m = (struct made){.pb = {.collective = collective,
                              .type = COLL_I32,
                              .root = n - 1,
                              .nranks = n,
                              .rank = rank,
                              .count = count}};
    if (!coll__has_counts(collective))
        return;
    lay_out(m, 0, n, collective == COLL_ALLTOALLV ? rank : 0, 0);
    lay_out(m, 2, n, collective == COLL_ALLTOALLV ? rank : 0, 1);
    if (collective == COLL_ALLTOALLV || collective == COLL_REDUCE_SCATTERV ||
        (collective == COLL_SCATTERV && is_root)) {
        m->pb.in_counts = m->numbers[0];
        m->pb.in_displs = m->numbers[1];
    }
    if (collective == COLL_ALLTOALLV || collective == COLL_ALLGATHERV ||
        (collective == COLL_GATHERV && is_root)) {
        m->pb.out_counts = m->numbers[collective == COLL_ALLTOALLV ? 2 : 0];
        m->pb.out_displs = m->numbers[collective == COLL_ALLTOALLV ? 3 : 1];
    }
    m->pb.count = collective == COLL_ALLTOALLV ? 0 : m->numbers[0][rank];
}

/* Note the bytes of a piece: in the buffer once over all pieces, in the slot once a
 * piece, and as many as the piece's problem has. */
static void note(struct coll__cut *cut, uint32_t k, enum coll__buf buf,
                 unsigned char *seen)
{
    unsigned char slot[SLOT] = {0};
    struct coll__problem pb;
    struct coll__cut_span span;
    size_t in, out, begin, sum = 0;
    int part = 0;

    coll__cut_piece(cut, k, &pb, &in, &out);
    begin = buf == BUF_IN ? in : out;
    while (coll__cut_next(cut, k, buf, &part, &span)) {
        ck_assert_uint_le(span.there + span.len, ROOM);
        ck_assert_uint_ge(span.here, begin);
        ck_assert_uint_le(span.here + span.len,
                          begin + coll__problem_len(&pb, buf));
        ck_assert_uint_le(span.here + span.len, cut->at + cut->len);
        for (size_t i = 0; i < span.len; i++) {
            ck_assert(!seen[span.there + i]++);
            ck_assert(!slot[span.here + i]++);
        }
        sum += span.len;
    }
    ck_assert_uint_eq(sum, coll__problem_len(&pb, buf)); /* pieces are packed */
}

/* The bytes that the whole problem mentions. */
static void mention(const struct coll__problem *pb, enum coll__buf buf,
                    unsigned char *seen)
{
    switch (coll__problem_shape(pb, buf)) {
    case SHAPE_WHOLE:
        memset(seen, 1, coll__problem_bytes(pb));
        break;
    case SHAPE_PARTS:
        for (int r = 0; r < pb->nranks; r++) {
            struct coll__span span = coll__part(pb, buf, r);

            memset(seen + span.off, 1, span.len);
        }
        break;
    case SHAPE_NONE:
        break;
    }
}

static uint32_t check_one(const struct coll__problem *pb, size_t len)
{
    unsigned char seen[ROOM], wanted[ROOM];
    struct coll__cut cut;
    uint32_t n;

    ck_assert_int_eq(coll__cut_init(&cut, pb, SLOT, SLOT - len, len), COLL_OK);
    for (enum coll__buf buf = BUF_IN; buf <= BUF_OUT; buf++) {
        memset(seen, 0, ROOM);
        memset(wanted, 0, ROOM);
        for (uint32_t k = 0; k < cut.n + 2; k++) /* and beyond the last */
            note(&cut, k, buf, seen);
        mention(pb, buf, wanted);
        ck_assert(!memcmp(seen, wanted, ROOM));
    }
    n = cut.n;
    coll__cut_fini(&cut);
    return n;
}

/* _i: the collective */
START_TEST(every_byte_goes_through_the_slot_once)
{
    enum coll_collective collective = (enum coll_collective)_i;

    for (int n = 1; n <= RANKS; n++)
        for (size_t c = 0; c < sizeof(counts_of) / sizeof(*counts_of); c++)
            for (size_t l = 0; l < sizeof(lens) / sizeof(*lens); l++) {
                uint32_t of_first = 0;

                for (int rank = 0; rank < n; rank++) {
                    struct made m;
                    uint32_t pieces;

                    make(&m, collective, n, rank, counts_of[c] / (size_t)n);
                    pieces = check_one(&m.pb, lens[l]);
                    if (!rank)
                        of_first = pieces;
                    if (!coll__has_own_counts(collective))
                        ck_assert_uint_eq(pieces, of_first);
                }
            }
}
END_TEST

START_TEST(what_has_no_room_is_refused)
{
    struct coll__cut cut;
    struct made m;

    make(&m, COLL_ALLTOALL, RANKS, 0, 1);
    ck_assert_int_eq(coll__cut_init(&cut, &m.pb, SLOT, 0, 39),
                     COLL_ERR_UNSUPPORTED);
    ck_assert_int_eq(coll__cut_init(&cut, &m.pb, SLOT, 0, 40), COLL_OK);
    make(&m, COLL_SEND, 2, 0, 100); /* less than a unit, which both ends know */
    ck_assert_int_eq(coll__cut_init(&cut, &m.pb, SLOT, 0, 60),
                     COLL_ERR_UNSUPPORTED);
    ck_assert_int_eq(coll__cut_init(&cut, &m.pb, SLOT, 0, 64), COLL_OK);
    ck_assert_uint_eq(cut.n, 7);
    ck_assert_int_eq(coll__cut_init(&cut, &m.pb, SLOT, 0, 400), COLL_OK);
    ck_assert_uint_eq(cut.n, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cut");
    TCase *tc = tcase_create("cut");

    tcase_add_loop_test(tc, every_byte_goes_through_the_slot_once, 0,
                        COLL_N_COLLECTIVES);
    tcase_add_test(tc, what_has_no_room_is_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
