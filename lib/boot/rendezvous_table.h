/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_table.h - what rank 0 knows of the other ranks at the rendezvous, and what
 * it tells each: decisions only, no sockets.
 *
 * Each rank says that it is here.  When all have, each is welcomed and hands in its
 * block.  Once its parent's block is there too, the rank is handed that block.  Rank 0
 * can keep a limited number of connections, called seats.  A rank that has to wait
 * keeps its connection while a seat is free, so that its death is noticed at once.
 * Without a free seat the rank is sent away; it comes again and starts over.  So rank 0
 * holds few sockets, however many ranks there are.
 */
#ifndef COLL_LIB_BOOT_RENDEZVOUS_TABLE_H
#define COLL_LIB_BOOT_RENDEZVOUS_TABLE_H

#include <stddef.h>

#define COLL__TCP_SEATS 256

enum tcp_step {             /* the state of a rank's connection */
                STEP_AWAY,  /* it has none */
                STEP_COME,  /* it has proved the secret */
                STEP_HERE,  /* it waits for the others */
                STEP_BLOCK, /* it was welcomed and owes its block */
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

enum {
    MARK_CAME = 1,
    MARK_BLOCK = 2,
    MARK_SERVED = 4,
    MARK_ENDED = 8 /* it will not come */
};

enum tcp_say { SAY_NOTHING, SAY_WELCOME, SAY_PARENT, SAY_AGAIN };

/* Begin a table, in which rank 0 is here; 0, or -1 without memory. */
int coll__rendezvous_table_init(struct rendezvous_table *table, int size,
                                int n_seats);
void coll__rendezvous_table_fini(struct rendezvous_table *table);

/* Must a rank leave before another connection is accepted? */
int coll__rendezvous_table_is_full(const struct rendezvous_table *table);

/* come: note that a rank has connected and proved the secret.  leave: note that a
 * rank's connection has ended. */
void coll__rendezvous_table_come(struct rendezvous_table *table, int rank);
void coll__rendezvous_table_leave(struct rendezvous_table *table, int rank);

/* A rank says that it is here, or hands in its block; returns what to tell it.  Once the
 * last rank is here, the caller welcomes all in STEP_HERE; after a block, it hands the
 * block to the children in STEP_WAIT. */
enum tcp_say coll__rendezvous_table_here(struct rendezvous_table *table,
                                         int rank);
enum tcp_say coll__rendezvous_table_block(struct rendezvous_table *table,
                                          int rank);

/* Note what the rank was told. */
void coll__rendezvous_table_said(struct rendezvous_table *table, int rank,
                                 enum tcp_say say);

/* May a rank that has all it needs keep its connection until the tree is up? */
int coll__rendezvous_table_may_stay(const struct rendezvous_table *table);

/* Return after how many ms a rank that was sent away is to come again.  All of them
 * together then make a few thousand visits a second. */
unsigned coll__rendezvous_table_pause(const struct rendezvous_table *table);

/* Write the ranks without this mark: "rank 3", "ranks 3, 5"; after eight of them, ", ...
 * (9 in all)". */
void coll__rendezvous_table_name(const struct rendezvous_table *table,
                                 unsigned mark, char *text, size_t len);

#endif
