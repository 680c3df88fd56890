/* SPDX-License-Identifier: BSD-3-Clause */
/* trees.c - interned trees, and the canonical one. */
#include "lib/proof/trees.h"
#include "include/coll/coll.h"

#include <stddef.h>
#include <stdlib.h>

static int slot_of(const struct coll__trees *trees, struct coll__tree tree)
{
    unsigned mask = (unsigned)trees->table_len - 1;
    unsigned slot = (unsigned)tree.left * 0x9e3779b1u ^
                    (unsigned)tree.right * 0x85ebca77u;

    slot = (slot ^ slot >> 15) & mask;
    while (trees->table[slot] >= 0 &&
           (trees->trees[trees->table[slot]].left != tree.left ||
            trees->trees[trees->table[slot]].right != tree.right))
        slot = (slot + 1) & mask;
    return (int)slot;
}

static int grow(struct coll__trees *trees)
{
    int cap = trees->cap ? 2 * trees->cap : 64;
    struct coll__tree *more =
        realloc(trees->trees, (size_t)cap * sizeof(*more));
    int *table;

    if (!more)
        return COLL_ERR_NOMEM;
    trees->trees = more;
    table = malloc(2 * (size_t)cap * sizeof(*table));
    if (!table)
        return COLL_ERR_NOMEM;
    free(trees->table);
    trees->table = table;
    trees->cap = cap;
    trees->table_len = 2 * cap;
    for (int i = 0; i < trees->table_len; i++)
        table[i] = -1;
    for (int i = 0; i < trees->n; i++)
        table[slot_of(trees, trees->trees[i])] = i;
    return COLL_OK;
}

static int intern(struct coll__trees *trees, struct coll__tree tree)
{
    int slot;

    if (trees->n == trees->cap && grow(trees))
        return -1;
    slot = slot_of(trees, tree);
    if (trees->table[slot] < 0) {
        trees->trees[trees->n] = tree;
        trees->table[slot] = trees->n++;
    }
    return trees->table[slot];
}

int coll__trees_init(struct coll__trees *trees, int commutes)
{
    *trees = (struct coll__trees){.commutes = commutes};
    return grow(trees);
}

int coll__trees_leaf(struct coll__trees *trees, int rank)
{
    return intern(trees, (struct coll__tree){rank, -1});
}

int coll__trees_pair(struct coll__trees *trees, int left, int right)
{
    if (left < 0 || right < 0)
        return -1;
    if (trees->commutes && left > right)
        return intern(trees, (struct coll__tree){right, left});
    return intern(trees, (struct coll__tree){left, right});
}

int coll__trees_canonical(struct coll__trees *trees, int n_ranks)
{
    int m = 1, e, *operands, tree;

    while (m <= n_ranks / 2)
        m *= 2;
    e = n_ranks - m;
    operands = malloc((size_t)m * sizeof(*operands));
    if (!operands)
        return -1;
    for (int i = 0; i < m; i++)
        operands[i] =
            i < e ? coll__trees_pair(trees, coll__trees_leaf(trees, 2 * i),
                                     coll__trees_leaf(trees, 2 * i + 1))
                  : coll__trees_leaf(trees, i + e);
    for (; m > 1; m /= 2)
        for (int i = 0; i < m / 2; i++)
            operands[i] =
                coll__trees_pair(trees, operands[2 * i], operands[2 * i + 1]);
    tree = operands[0];
    free(operands);
    return tree;
}

/* Return the tree of the last n ranks up to this one, or of all if there are fewer; n is
 * a power of two. */
static int last_of(struct coll__trees *trees, int rank, int n)
{
    int right;

    if (n == 1)
        return coll__trees_leaf(trees, rank);
    right = last_of(trees, rank, n / 2);
    return rank < n / 2
               ? right
               : coll__trees_pair(trees, last_of(trees, rank - n / 2, n / 2),
                                  right);
}

int coll__trees_scan(struct coll__trees *trees, int rank)
{
    int n = 1;

    while (n <= rank)
        n *= 2;
    return last_of(trees, rank, n);
}

int coll__trees_exscan(struct coll__trees *trees, int rank)
{
    int tree = coll__trees_leaf(trees, rank - 1);

    for (int n = 2; n <= rank; n *= 2)
        tree = coll__trees_pair(trees, last_of(trees, rank - n, n), tree);
    return tree;
}

void coll__trees_fini(struct coll__trees *trees)
{
    free(trees->trees);
    free(trees->table);
}
