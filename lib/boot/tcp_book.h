/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_book.h - what rank 0 knows of the others at the rendezvous, and what it
 * says to whom: decisions alone, no sockets.
 *
 * Each rank says that it is here; when all are, each is welcomed and hands in
 * its block; once its parent's block is there too, it is handed that one.  Who
 * would have to wait keeps its connection while there is a seat, so that its
 * death is noticed at once; another one is sent away to come again, and begins
 * from the start.  So rank 0 holds few sockets, however many ranks there are.
 */
#ifndef COLL_LIB_BOOT_TCP_BOOK_H
#define COLL_LIB_BOOT_TCP_BOOK_H

#define COLL__TCP_SEATS 256

enum tcp_step {             /* how far a rank's connection is */
                STEP_AWAY,  /* it has none */
                STEP_COME,  /* it has proved the secret */
                STEP_HERE,  /* it waits for the others */
                STEP_BLOCK, /* it is welcome and owes its block */
                STEP_WAIT,  /* it waits for its parent's block */
                STEP_IN     /* it has all that it needs */
};

struct tcp_book {
    int size, n_seats;
    int n_held;           /* connections */
    int n_missing;        /* ranks that never came */
    int n_unserved;       /* ranks that lack their parent's block */
    unsigned char *step;  /* [size] of enum tcp_step */
    unsigned char *marks; /* [size] of MARK_* */
};

enum { MARK_CAME = 1, MARK_BLOCK = 2, MARK_SERVED = 4 };

enum tcp_say { SAY_NOTHING, SAY_WELCOME, SAY_PARENT, SAY_AGAIN };

/* Begin a book, rank 0 there; 0, or -1 without memory. */
int coll__tcp_book_init(struct tcp_book *book, int size, int n_seats);
void coll__tcp_book_fini(struct tcp_book *book);

/* Say whether nobody else is to be let in before somebody leaves. */
int coll__tcp_book_is_full(const struct tcp_book *book);

/* A rank has proved itself, and its connection has ended. */
void coll__tcp_book_come(struct tcp_book *book, int rank);
void coll__tcp_book_leave(struct tcp_book *book, int rank);

/* It says that it is here, or hands in its block: what to say to it.  After the
 * last rank's first word all in STEP_HERE are to be welcomed; after a block,
 * the children in STEP_WAIT are to be handed it. */
enum tcp_say coll__tcp_book_here(struct tcp_book *book, int rank);
enum tcp_say coll__tcp_book_block(struct tcp_book *book, int rank);

/* It has been told. */
void coll__tcp_book_said(struct tcp_book *book, int rank, enum tcp_say say);

/* May a rank that has all it needs keep its connection until the tree is? */
int coll__tcp_book_may_stay(const struct tcp_book *book);

/* Return in how many ms one that was sent away is to come again: all of them
 * together are a few thousand visits a second. */
unsigned coll__tcp_book_pause(const struct tcp_book *book);

#endif
