/* SPDX-License-Identifier: BSD-3-Clause */
/* members.c - which ranks of the first communicator the ranks of this one are.
 *
 * An error names ranks by their numbers in the communicator that failed.  The user
 * knows the numbers of the first communicator.  So errors of a split communicator begin
 * with its ranks' numbers in the first one, in order; arithmetic sequences (rows,
 * columns) are shortened.
 */
#include "lib/comm/members.h"
#include "lib/comm/comm.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>

/* Return the length of the arithmetic sequence that begins at i; 1 if it has fewer than
 * three numbers. */
static int run_from(const int *numbers, int n, int i)
{
    int len = 2;

    if (i + 2 >= n)
        return 1;
    while (i + len < n && numbers[i + len] - numbers[i + len - 1] ==
                              numbers[i + 1] - numbers[i])
        len++;
    return len >= 3 ? len : 1;
}

/* Write "1 3 5" or "0 4 ... 60", and "..." for numbers that do not fit. */
static void list(const int *numbers, int n, char *text, size_t len)
{
    size_t at = 0;

    for (int i = 0; i < n;) {
        int run = run_from(numbers, n, i);

        if (at + 40 > len) {
            snprintf(text + at, len - at, " ...");
            return;
        }
        at += (size_t)snprintf(text + at, len - at, "%s%d", i ? " " : "",
                               numbers[i]);
        if (run > 3)
            at += (size_t)snprintf(text + at, len - at, " %d ... %d",
                                   numbers[i + 1], numbers[i + run - 1]);
        i += run > 3 ? run : 1;
    }
}

/* Are they 0, 1, 2 ... n_first - 1? */
static int is_first(const int *numbers, int n, int n_first)
{
    for (int i = 0; i < n; i++)
        if (numbers[i] != i)
            return 0;
    return n == n_first;
}

int coll__members_init(struct coll_comm *comm, const struct coll_comm *whole,
                       const int *ranks)
{
    int n = comm->size;
    struct coll__members *m = &comm->members;

    m->n_first = whole->members.first ? whole->members.n_first : whole->size;
    m->first = malloc((size_t)n * sizeof(*m->first));
    if (!m->first) {
        log_error("comm", "no memory for %d ranks", n);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n; i++)
        m->first[i] =
            whole->members.first ? whole->members.first[ranks[i]] : ranks[i];
    if (is_first(m->first, n, m->n_first))
        coll__members_fini(comm);
    return COLL_OK;
}

void coll__members_fini(struct coll_comm *comm)
{
    free(comm->members.first);
    comm->members = (struct coll__members){0};
}

void coll__members_text(const struct coll_comm *comm, char *text, size_t len)
{
    const struct coll__members *m = &comm->members;
    char numbers[160];

    text[0] = '\0';
    if (!m->first)
        return;
    list(m->first, comm->size, numbers, sizeof(numbers));
    snprintf(text, len,
             "in the group of rank%s %s of %d: ", comm->size > 1 ? "s" : "",
             numbers, m->n_first);
}
