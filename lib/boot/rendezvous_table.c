/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous_table.c - see rendezvous_table.h. */
#include "lib/boot/rendezvous_table.h"
#include "lib/net/tree.h"

#include <stdio.h>
#include <stdlib.h>

#define VISITS_PER_MS 4
#define LEAST_PAUSE 20

int coll__rendezvous_table_init(struct rendezvous_table *table, int size,
                                int n_seats)
{
    *table = (struct rendezvous_table){.size = size,
                                       .n_seats = n_seats,
                                       .n_missing = size - 1,
                                       .n_unserved = size - 1};
    table->step = calloc((size_t)size, 1);
    table->marks = calloc((size_t)size, 1);
    if (!table->step || !table->marks) {
        coll__rendezvous_table_fini(table);
        return -1;
    }
    table->marks[0] = MARK_CAME | MARK_SERVED;
    return 0;
}

void coll__rendezvous_table_fini(struct rendezvous_table *table)
{
    free(table->step);
    free(table->marks);
    table->step = table->marks = NULL;
}

/* Twice as many connections as seats: the second half are ranks that come and go. */
int coll__rendezvous_table_is_full(const struct rendezvous_table *table)
{
    return table->n_held >= 2 * table->n_seats;
}

void coll__rendezvous_table_come(struct rendezvous_table *table, int rank)
{
    table->step[rank] = STEP_COME;
    table->n_held++;
}

void coll__rendezvous_table_leave(struct rendezvous_table *table, int rank)
{
    table->n_held -= table->step[rank] != STEP_AWAY;
    table->step[rank] = STEP_AWAY;
}

int coll__rendezvous_table_may_stay(const struct rendezvous_table *table)
{
    return table->n_held <= table->n_seats;
}

static enum tcp_say wait_or_go(const struct rendezvous_table *table)
{
    return coll__rendezvous_table_may_stay(table) ? SAY_NOTHING : SAY_AGAIN;
}

enum tcp_say coll__rendezvous_table_here(struct rendezvous_table *table,
                                         int rank)
{
    if (!(table->marks[rank] & MARK_CAME))
        table->n_missing--;
    table->marks[rank] |= MARK_CAME;
    table->step[rank] = STEP_HERE;
    return table->n_missing ? wait_or_go(table) : SAY_WELCOME;
}

enum tcp_say coll__rendezvous_table_block(struct rendezvous_table *table,
                                          int rank)
{
    table->marks[rank] |= MARK_BLOCK;
    if (!rank)
        return SAY_NOTHING;
    table->step[rank] = STEP_WAIT;
    if (table->marks[coll__tree_parent(rank, table->size)] & MARK_BLOCK)
        return SAY_PARENT;
    return wait_or_go(table);
}

void coll__rendezvous_table_said(struct rendezvous_table *table, int rank,
                                 enum tcp_say say)
{
    if (say == SAY_WELCOME) {
        table->step[rank] = STEP_BLOCK;
    } else if (say == SAY_PARENT) {
        table->n_unserved -= !(table->marks[rank] & MARK_SERVED);
        table->marks[rank] |= MARK_SERVED;
        table->step[rank] = STEP_IN;
    } else if (say == SAY_AGAIN) {
        coll__rendezvous_table_leave(table, rank);
    }
}

unsigned coll__rendezvous_table_pause(const struct rendezvous_table *table)
{
    unsigned n = (unsigned)table->size, ms = n / VISITS_PER_MS;

    return ms < LEAST_PAUSE ? LEAST_PAUSE : ms;
}

void coll__rendezvous_table_name(const struct rendezvous_table *table,
                                 unsigned mark, char *text, size_t len)
{
    int n_named = 0, n_missing = 0;
    size_t at;

    for (int r = 1; r < table->size; r++)
        n_missing += !(table->marks[r] & mark);
    at = (size_t)snprintf(text, len, n_missing > 1 ? "ranks" : "rank");
    for (int r = 1; r < table->size && n_named < 8; r++)
        if (!(table->marks[r] & mark))
            at += (size_t)snprintf(text + at, len - at, "%s %d",
                                   n_named++ ? "," : "", r);
    if (n_missing > n_named)
        snprintf(text + at, len - at, ", ... (%d in all)", n_missing);
}
