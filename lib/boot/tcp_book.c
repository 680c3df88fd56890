/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_book.c - see tcp_book.h. */
#include "lib/boot/tcp_book.h"
#include "lib/net/tree.h"

#include <stdlib.h>

#define VISITS_PER_MS 4
#define LEAST_PAUSE 20

int coll__tcp_book_init(struct tcp_book *book, int size, int n_seats)
{
    *book = (struct tcp_book){.size = size,
                              .n_seats = n_seats,
                              .n_missing = size - 1,
                              .n_unserved = size - 1};
    book->step = calloc((size_t)size, 1);
    book->marks = calloc((size_t)size, 1);
    if (!book->step || !book->marks) {
        coll__tcp_book_fini(book);
        return -1;
    }
    book->marks[0] = MARK_CAME | MARK_SERVED;
    return 0;
}

void coll__tcp_book_fini(struct tcp_book *book)
{
    free(book->step);
    free(book->marks);
    book->step = book->marks = NULL;
}

/* Twice the seats: the second half is for those who come and go. */
int coll__tcp_book_is_full(const struct tcp_book *book)
{
    return book->n_held >= 2 * book->n_seats;
}

void coll__tcp_book_come(struct tcp_book *book, int rank)
{
    book->step[rank] = STEP_COME;
    book->n_held++;
}

void coll__tcp_book_leave(struct tcp_book *book, int rank)
{
    book->n_held -= book->step[rank] != STEP_AWAY;
    book->step[rank] = STEP_AWAY;
}

int coll__tcp_book_may_stay(const struct tcp_book *book)
{
    return book->n_held <= book->n_seats;
}

static enum tcp_say wait_or_go(const struct tcp_book *book)
{
    return coll__tcp_book_may_stay(book) ? SAY_NOTHING : SAY_AGAIN;
}

enum tcp_say coll__tcp_book_here(struct tcp_book *book, int rank)
{
    if (!(book->marks[rank] & MARK_CAME))
        book->n_missing--;
    book->marks[rank] |= MARK_CAME;
    book->step[rank] = STEP_HERE;
    return book->n_missing ? wait_or_go(book) : SAY_WELCOME;
}

enum tcp_say coll__tcp_book_block(struct tcp_book *book, int rank)
{
    book->marks[rank] |= MARK_BLOCK;
    if (!rank)
        return SAY_NOTHING;
    book->step[rank] = STEP_WAIT;
    if (book->marks[coll__tree_parent(rank, book->size)] & MARK_BLOCK)
        return SAY_PARENT;
    return wait_or_go(book);
}

void coll__tcp_book_said(struct tcp_book *book, int rank, enum tcp_say say)
{
    if (say == SAY_WELCOME) {
        book->step[rank] = STEP_BLOCK;
    } else if (say == SAY_PARENT) {
        book->n_unserved -= !(book->marks[rank] & MARK_SERVED);
        book->marks[rank] |= MARK_SERVED;
        book->step[rank] = STEP_IN;
    } else if (say == SAY_AGAIN) {
        coll__tcp_book_leave(book, rank);
    }
}

unsigned coll__tcp_book_pause(const struct tcp_book *book)
{
    unsigned n = (unsigned)book->size, ms = n / VISITS_PER_MS;

    return ms < LEAST_PAUSE ? LEAST_PAUSE : ms;
}
