/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_table.h - what rank 0 knows of the others at the rendezvous, and what it
 * says to whom: decisions alone, no sockets.
 *
 * Each rank says that it is here; when all are, each is welcomed and hands in
 * its block; once its parent's block is there too, it is handed that one.  Who
 * would have to wait keeps its connection while there is a seat, so that its
 * death is noticed at once; another one is sent away to come again, and begins
 * from the start.  So rank 0 holds few sockets, however many ranks there are.
 */
#ifndef COLL_LIB_BOOT_RENDEZVOUS_TABLE_H
#define COLL_LIB_BOOT_RENDEZVOUS_TABLE_H

#define COLL__TCP_SEATS 256

enum tcp_step {             /* how far a rank's connection is */
                STEP_AWAY,  /* it has none */
                STEP_COME,  /* it has proved the secret */
                STEP_HERE,  /* it waits for the others */
                STEP_BLOCK, /* it is welcome and owes its block */
                STEP_WAIT,  /* it waits for its parent's block */
                STEP_IN     /* it has all that it needs */
};

struct rendezvous_table {
    int size, n_seats;
    int n_held;           /* connections */
    int n_missing;        /* ranks that never came */
    int n_unserved;       /* ranks that lack their parent's block */
    unsigned char *step;  /* [size] of enum tcp_step */
    unsigned char *marks; /* [size] of MARK_* */
};

enum { MARK_CAME = 1, MARK_BLOCK = 2, MARK_SERVED = 4 };

enum tcp_say { SAY_NOTHING, SAY_WELCOME, SAY_PARENT, SAY_AGAIN };

/* Begin a table, rank 0 there; 0, or -1 without memory. */
int coll__rendezvous_table_init(struct rendezvous_table *table, int size,
                                int n_seats);
void coll__rendezvous_table_fini(struct rendezvous_table *table);

/* Say whether nobody else is to be let in before somebody leaves. */
int coll__rendezvous_table_is_full(const struct rendezvous_table *table);

/* A rank has proved itself, and its connection has ended. */
void coll__rendezvous_table_come(struct rendezvous_table *table, int rank);
void coll__rendezvous_table_leave(struct rendezvous_table *table, int rank);

/* It says that it is here, or hands in its block: what to say to it.  After the
 * last rank's first word all in STEP_HERE are to be welcomed; after a block,
 * the children in STEP_WAIT are to be handed it. */
enum tcp_say coll__rendezvous_table_here(struct rendezvous_table *table,
                                         int rank);
enum tcp_say coll__rendezvous_table_block(struct rendezvous_table *table,
                                          int rank);

/* It has been told. */
void coll__rendezvous_table_said(struct rendezvous_table *table, int rank,
                                 enum tcp_say say);

/* May a rank that has all it needs keep its connection until the tree is? */
int coll__rendezvous_table_may_stay(const struct rendezvous_table *table);

/* Return in how many ms one that was sent away is to come again: all of them
 * together are a few thousand visits a second. */
unsigned coll__rendezvous_table_pause(const struct rendezvous_table *table);

#endif
