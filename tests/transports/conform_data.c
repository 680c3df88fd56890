/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_data.c - what the ranks send each other, and whether it arrived. */
#include "tests/transports/conform.h"
#include "lib/device/region.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define SHORT 4000 /* these are copied in any case */
#define BEFORE 40  /* a buffer begins anywhere */

/* ---- memory ------------------------------------------------------------- */

int conform_in_regions;

void *conform_alloc(size_t len)
{
    void *region;
    unsigned char *bytes;

    if (conform_in_regions && len > SHORT &&
        coll_mem_alloc(&region, len + BEFORE) == COLL_OK)
        return (unsigned char *)region + BEFORE;
    bytes = calloc(1, len + 1);
    if (!bytes)
        abort();
    return bytes;
}

void conform_free(void *bytes)
{
    struct coll__region_place place;

    if (!coll__region_find(bytes, 1, &place)) {
        free(bytes);
        return;
    }
    if (place.off != REGION_HEAD + BEFORE ||
        coll_mem_free((unsigned char *)bytes - BEFORE))
        abort();
}

/* ---- payloads ----------------------------------------------------------- */

/* The bytes of all messages: random ones, round and round.  A prime number of them is no
 * multiple of any piece that a transport cuts, so that a piece in a wrong place shows.
 * Whole runs are copied and compared: byte by byte, sanitizers would look at each. */
#define CYCLE 65521
static unsigned char cycle[CYCLE];

/* Before there are threads. */
__attribute__((constructor)) static void fill_cycle(void)
{
    uint32_t word = 1;

    for (size_t i = 0; i < CYCLE; i++) {
        word = word * 1664525u + 1013904223u;
        cycle[i] = (unsigned char)(word >> 24);
    }
}

/* Where in the cycle a message begins. */
static size_t begin_of(int src, int dst, unsigned k)
{
    return (0x9e3779b9u * (k + 1) + (uint32_t)(src * 31 + dst) * 7919u) % CYCLE;
}

void *conform_new_payload(size_t len, int src, int dst, unsigned k)
{
    unsigned char *bytes = conform_alloc(len);
    size_t at = begin_of(src, dst, k), n;

    for (size_t i = 0; i < len; i += n, at = 0) {
        n = min_size(CYCLE - at, len - i);
        memcpy(bytes + i, cycle + at, n);
    }
    return bytes;
}

static size_t first_difference(const unsigned char *a, const unsigned char *b)
{
    size_t i = 0;

    while (a[i] == b[i])
        i++;
    return i;
}

void conform_expect_payload(struct rank *rank, const struct coll__xfer *xfer,
                            unsigned k)
{
    const unsigned char *got = xfer->buf;
    size_t at = begin_of(xfer->peer, rank->me, k), n;

    EXPECT(rank, xfer->status == COLL_OK, "message %u of %zu bytes: %s", k,
           xfer->len, coll_strerror(xfer->status));
    for (size_t i = 0; i < xfer->len; i += n, at = 0) {
        n = min_size(CYCLE - at, xfer->len - i);
        if (memcmp(cycle + at, got + i, n))
            EXPECT(rank, 0, "message %u of %zu bytes from %d differs at %zu", k,
                   xfer->len, xfer->peer,
                   i + first_difference(cycle + at, got + i));
    }
}

struct coll__signature conform_sig_of(unsigned k, size_t len)
{
    return (struct coll__signature){.seq = k, .op = 3, .root = 1, .count = len};
}

void conform_post_send(struct rank *rank, struct coll__xfer *xfer, int peer,
                       unsigned k, size_t len)
{
    *xfer =
        (struct coll__xfer){.peer = peer,
                            .channel = rank->channel,
                            .len = len,
                            .bytes.is_exchange = 1,
                            .buf = conform_new_payload(len, rank->me, peer, k),
                            .sig = conform_sig_of(k, len)};
    rank->tp->ops->send(rank->tp, xfer);
}

void conform_post_recv(struct rank *rank, struct coll__xfer *xfer, int peer,
                       unsigned k, size_t len)
{
    *xfer = (struct coll__xfer){.peer = peer,
                                .channel = rank->channel,
                                .len = len,
                                .buf = conform_alloc(len),
                                .sig = conform_sig_of(k, len)};
    rank->tp->ops->recv(rank->tp, xfer);
}

void conform_finish(struct rank *rank, struct coll__xfer *sends,
                    struct coll__xfer *recvs, int n, unsigned first)
{
    conform_wait(rank, recvs, n);
    conform_wait(rank, sends, n);
    for (int i = 0; i < n; i++) {
        EXPECT(rank, sends[i].status == COLL_OK, "send: %s",
               coll_strerror(sends[i].status));
        conform_expect_payload(rank, &recvs[i], first + (unsigned)i);
        conform_free(sends[i].buf);
        conform_free(recvs[i].buf);
    }
}

/* ---- reductions --------------------------------------------------------- */

void conform_sum_i32(void *dst, const void *left, const void *right, size_t len)
{
    for (size_t i = 0; i < len; i += 4) {
        int32_t a, b;

        memcpy(&a, (const char *)left + i, 4);
        memcpy(&b, (const char *)right + i, 4);
        a += b;
        memcpy((char *)dst + i, &a, 4);
    }
}

void conform_sum_f64(void *dst, const void *left, const void *right, size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        double a, b;

        memcpy(&a, (const char *)left + i, 8);
        memcpy(&b, (const char *)right + i, 8);
        a += b;
        memcpy((char *)dst + i, &a, 8);
    }
}

#define ROUND 1009 /* elements until they come again: a prime, see CYCLE */

/* Element i of what src contributes; small whole numbers, exact in f64. */
static void put_element(void *buf, size_t i, int src, int is_f64)
{
    int32_t whole = (int32_t)(i % ROUND) * 3 + src * 7;
    double real = whole;

    if (is_f64)
        memcpy((char *)buf + i * 8, &real, 8);
    else
        memcpy((char *)buf + i * 4, &whole, 4);
}

static void *new_elements(size_t count, int src, int is_f64)
{
    size_t size = is_f64 ? 8 : 4, done = min_size(count, ROUND), n;
    char *buf = conform_alloc(count * 8);

    for (size_t i = 0; i < done; i++)
        put_element(buf, i, src, is_f64);
    /* what is there is whole rounds: as much again follows it */
    for (; done < count; done += n) {
        n = min_size(done, count - done);
        memcpy(buf + done * size, buf, n * size);
    }
    return buf;
}

void conform_expect_elements(struct rank *rank, const struct coll__xfer *xfer,
                             int is_f64)
{
    size_t count = xfer->len / (is_f64 ? 8 : 4);
    void *want = new_elements(count, xfer->peer, is_f64);
    void *own = new_elements(count, rank->me, is_f64);

    if (xfer->reduce)
        xfer->reduce(want, own, want, xfer->len);
    EXPECT(rank, xfer->status == COLL_OK, "%s", coll_strerror(xfer->status));
    EXPECT(rank, !memcmp(want, xfer->buf, xfer->len), "%zu %s are wrong", count,
           is_f64 ? "f64" : "i32");
    if (xfer->reduce && xfer->with != xfer->buf)
        EXPECT(rank, !memcmp(own, xfer->with, xfer->len),
               "the operand of %zu was written to", count);
    conform_free(want);
    conform_free(own);
}

void conform_post_elements(struct rank *rank, struct coll__xfer *xfer,
                           size_t count, int is_recv, unsigned k)
{
    int is_f64 = xfer->reduce == conform_sum_f64;
    int is_apart = is_recv && xfer->reduce && k % 2;
    unsigned char *room =
        new_elements(is_apart ? 2 * count : count, rank->me, is_f64);

    xfer->len = count * (is_f64 ? 8 : 4);
    xfer->buf = room;
    xfer->with = room;
    if (is_apart) {
        memmove(room + xfer->len, room, xfer->len);
        memset(room, 0x5a, xfer->len);
        xfer->with = room + xfer->len;
    }
    xfer->sig = conform_sig_of(k, xfer->len);
    (is_recv ? rank->tp->ops->recv : rank->tp->ops->send)(rank->tp, xfer);
}
