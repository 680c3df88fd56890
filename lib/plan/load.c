/* SPDX-License-Identifier: BSD-3-Clause */
/* load.c - read a plan file: all ranks' plans of one problem.
 *
 * The text is made of lines of words; '#' begins a comment.  First the head,
 * whose fields after the first may come in any order:
 *
 *   coll_plan 1            the version of the format; always the first line
 *   collective allreduce   its name; not send and recv
 *   type f32               the element type
 *   ranks 2                1 to 1024
 *   count 4                elements, as in the call
 *   op sum                 or "user" for a function of the caller; [sum]
 *   order free             free, canonical or ranks: how strictly the plan
 *                          keeps the order of combination; [free]
 *   root 0                 [0]
 *   algorithm mine         a name for people; [file]
 *   chunk 0                the chunk size of the steps, for people; [0]
 *   edges inferred         or "listed": by the steps' own lists; [inferred]
 *
 * Then comes each rank's part, in order of the ranks: the bytes of scratch,
 * "count N" if the rank has its own count (gatherv, scatterv), "in_place" if it
 * works in place, and its steps, numbered from 0:
 *
 *   rank 0 tmp 16
 *   0 copy out[0,16) from in[0,16)
 *   1 send peer 1 in[0,16)
 *   2 recv peer 1 tmp[0,16)
 *   3 reduce out[0,16) from tmp[0,16)
 *
 * The kinds are copy DST from SRC, reduce DST from SRC (DST = DST op SRC),
 * scale DST (for avg: divide by the ranks), send peer P SRC, recv peer P DST,
 * recv_reduce peer P DST with SRC (DST = SRC op message; without "with", SRC is
 * DST), and order DST from SRC (moves nothing: steps that use DST wait for SRC).
 * A span is BUFFER[FROM,TO), in bytes, of in, out or tmp.  "left" after the spans
 * of a reduction makes SRC (or the message) the left operand.
 * With "edges listed" a step may end in "waits for 0 2": the earlier steps that
 * must have finished.  Sends to one peer leave in the order of the list, and
 * receives from one peer are taken in that order.
 *
 * A collective whose name ends in v has lines of one number a rank, after the
 * rank's line: in_counts and in_displs, out_counts and out_displs, as in
 * coll_args.  Without displs the parts are packed.  In gatherv and scatterv only
 * the root needs these lines.
 *
 * Memory is in proportion to the text: a number in the text does not make the
 * reader allocate more.
 */
#include "lib/plan/load.h"
#include "lib/plan/words.h"
#include "lib/trace/log.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE ((size_t)64 << 20)

static int no_memory(const struct coll__loader *l)
{
    log_error("plan", "%s: no memory for its plans", l->scan.name);
    return COLL_ERR_NOMEM;
}

/* ---- the head ------------------------------------------------------------- */

enum field {
    FIELD_COLLECTIVE,
    FIELD_TYPE,
    FIELD_RANKS,
    FIELD_COUNT,
    FIELD_OP,
    FIELD_ORDER,
    FIELD_ROOT,
    FIELD_ALGORITHM,
    FIELD_CHUNK,
    FIELD_EDGES,
    N_FIELDS
};
static const char *const fields[N_FIELDS] = {
    "collective", "type", "ranks",     "count", "op",
    "order",      "root", "algorithm", "chunk", "edges"};

static int read_collective(struct coll__loader *l, int *value)
{
    const char *names[COLL__N_OF_ALL];
    int i, rc;

    for (i = 0; i < COLL__N_OF_ALL; i++)
        names[i] = coll_collective_name(coll__of_all(i));
    rc = coll__scan_name(&l->scan, "collective", names, COLL__N_OF_ALL, &i);
    if (rc == COLL_OK)
        *value = (int)coll__of_all(i);
    return rc;
}

static int read_type(struct coll__loader *l, int *value)
{
    const char *names[COLL_N_TYPES];

    for (int i = 0; i < COLL_N_TYPES; i++)
        names[i] = coll_type_name((enum coll_type)i);
    return coll__scan_name(&l->scan, "type", names, COLL_N_TYPES, value);
}

static int read_op(struct coll__loader *l)
{
    const char *names[COLL_N_OPS + 1];
    int value, rc;

    for (int i = 0; i < COLL_N_OPS; i++)
        names[i] = coll_op_name((enum coll_op)i);
    names[COLL_N_OPS] = "user";
    rc = coll__scan_name(&l->scan, "op", names, COLL_N_OPS + 1, &value);
    if (rc)
        return rc;
    l->head.is_user_op = value == COLL_N_OPS;
    l->head.op = l->head.is_user_op ? COLL_SUM : (enum coll_op)value;
    return COLL_OK;
}

static int read_algorithm(struct coll__loader *l)
{
    char *name = l->plans->algorithm;

    if (!coll__scan_word(&l->scan) ||
        l->scan.word_len >= sizeof(l->plans->algorithm))
        return coll__scan_fault(&l->scan, "algorithm: a name of 1 to %zu "
                                "characters is needed",
                                sizeof(l->plans->algorithm) - 1);
    for (size_t i = 0; i < l->scan.word_len; i++) {
        char c = l->scan.word[i];

        if (c <= ' ' || c > '~')
            return coll__scan_fault(&l->scan, "algorithm: its name may have "
                                    "visible ASCII characters only");
        name[i] = c;
    }
    name[l->scan.word_len] = '\0';
    return COLL_OK;
}

static int read_field(struct coll__loader *l, enum field field)
{
    static const char *const kinds[] = {"inferred", "listed"};
    struct coll__scan *scan = &l->scan;
    int value = 0, rc = COLL_OK;

    switch (field) {
    case FIELD_COLLECTIVE:
        rc = read_collective(l, &value);
        l->head.collective = (enum coll_collective)value;
        return rc;
    case FIELD_TYPE:
        rc = read_type(l, &value);
        l->head.type = (enum coll_type)value;
        return rc;
    case FIELD_RANKS:
        return coll__scan_int(scan, "ranks", 1, COLL__PLANS_RANKS,
                              &l->head.nranks);
    case FIELD_COUNT:
        return coll__scan_size(scan, "count", &l->head.count);
    case FIELD_OP:
        return read_op(l);
    case FIELD_ORDER:
        rc = coll__scan_name(scan, "order", coll__order_names, 3, &value);
        l->head.order = (enum coll__order)value;
        return rc;
    case FIELD_ROOT:
        return coll__scan_int(scan, "root", 0, COLL__PLANS_RANKS - 1,
                              &l->head.root);
    case FIELD_ALGORITHM:
        return read_algorithm(l);
    case FIELD_CHUNK:
        return coll__scan_size(scan, "chunk", &l->plans->chunk);
    case FIELD_EDGES:
        return coll__scan_name(scan, "edges", kinds, 2, &l->plans->has_edges);
    case N_FIELDS:
        break;
    }
    return COLL_ERR_INTERNAL;
}

/* Take a line of the head. */
static int read_head_line(struct coll__loader *l)
{
    int field = 0, rc;

    while (field < N_FIELDS && !coll__scan_is(&l->scan, fields[field]))
        field++;
    if (field == N_FIELDS)
        return coll__scan_fault(&l->scan, "'%.*s' is no field of the head; "
                                "see the manual in coll_plan --help",
                                (int)min_size(l->scan.word_len, 24),
                                l->scan.word);
    if (l->seen & 1u << field)
        return coll__scan_fault(&l->scan, "%s stands twice", fields[field]);
    l->seen |= 1u << field;
    rc = read_field(l, (enum field)field);
    return rc ? rc : coll__scan_ended(&l->scan);
}

/* The head has ended: check that its fields are complete and within their limits. */
static int end_head(struct coll__loader *l)
{
    size_t p, size;

    for (int f = FIELD_COLLECTIVE; f <= FIELD_COUNT; f++)
        if (!(l->seen & 1u << f))
            return coll__scan_fault(&l->scan, "the head has no %s; add a line "
                                    "before the first rank", fields[f]);
    p = (size_t)l->head.nranks;
    size = coll_type_size(l->head.type);
    if (l->head.root >= l->head.nranks)
        return coll__scan_fault(&l->scan, "root %d is not within 0 to %d",
                                l->head.root, l->head.nranks - 1);
    if (l->head.count > PTRDIFF_MAX / size / p)
        return coll__scan_fault(&l->scan, "count %zu is larger than the "
                                "address space", l->head.count);
    l->plans->pbs = calloc(p, sizeof(*l->plans->pbs));
    l->plans->plans = calloc(p, sizeof(*l->plans->plans));
    l->plans->numbers = calloc(p, sizeof(*l->plans->numbers));
    if (!l->plans->pbs || !l->plans->plans || !l->plans->numbers)
        return no_memory(l);
    for (size_t r = 0; r < p; r++) {
        l->plans->pbs[r] = l->head;
        l->plans->pbs[r].rank = (int)r;
        l->plans->plans[r].algorithm = l->plans->algorithm;
    }
    return COLL_OK;
}

/* ---- a rank --------------------------------------------------------------- */

enum { SEEN_STEPS = 1 << 4 }; /* and a bit for each line of counts */

static const char *const count_names[] = {"in_counts", "in_displs",
                                          "out_counts", "out_displs"};

/* Does the rank have parts of its own?  Other ranks need no counts. */
static int needs_counts(const struct coll__problem *pb, int of_out)
{
    enum coll__buf buf = of_out ? BUF_OUT : BUF_IN;
    int has = of_out ? coll__has_out_counts(pb->collective)
                     : coll__has_in_counts(pb->collective);

    return has && coll__problem_shape(pb, buf) == SHAPE_PARTS;
}

/* Return where the numbers of line k go within the rank's four arrays. */
static const size_t **counts_at(struct coll__problem *pb, int k)
{
    const size_t **at[] = {&pb->in_counts, &pb->in_displs, &pb->out_counts,
                           &pb->out_displs};

    return at[k];
}

static int read_counts(struct coll__loader *l, int k)
{
    struct coll__problem *pb = &l->plans->pbs[l->rank];
    size_t p = (size_t)pb->nranks, **numbers = &l->plans->numbers[l->rank];
    int has = k < 2 ? coll__has_in_counts(pb->collective)
                    : coll__has_out_counts(pb->collective), rc = COLL_OK;

    if (!has)
        return coll__scan_fault(&l->scan, "%s: %s has none", count_names[k],
                                coll_collective_name(pb->collective));
    if (l->seen & (SEEN_STEPS | 1u << k))
        return coll__scan_fault(&l->scan, "%s stands %s", count_names[k],
                                l->seen & SEEN_STEPS ? "behind the first step"
                                                     : "twice");
    l->seen |= 1u << k;
    if (!*numbers)
        *numbers = calloc(4 * p, sizeof(**numbers));
    if (!*numbers)
        return no_memory(l);
    *counts_at(pb, k) = *numbers + (size_t)k * p;
    for (size_t q = 0; q < p && rc == COLL_OK; q++)
        rc = coll__scan_size(&l->scan, count_names[k],
                             *numbers + (size_t)k * p + q);
    return rc ? rc : coll__scan_ended(&l->scan);
}

/* Pack the parts whose displs are not given, and check that they fit into memory. */
static int place_parts(struct coll__loader *l, int k)
{
    struct coll__problem *pb = &l->plans->pbs[l->rank];
    size_t p = (size_t)pb->nranks, at = 0;
    size_t *counts = l->plans->numbers[l->rank] + (size_t)k * p;
    size_t *displs = counts + p;
    size_t most = PTRDIFF_MAX / coll_type_size(pb->type);

    for (size_t q = 0; q < p; q++) {
        if (!(l->seen & 2u << k))
            displs[q] = at;
        if (counts[q] > most || displs[q] > most - counts[q])
            return coll__scan_fault(&l->scan, "rank %d: part %zu of its %s is "
                                    "larger than the address space", l->rank,
                                    q, count_names[k]);
        at = displs[q] + counts[q];
    }
    *counts_at(pb, k + 1) = displs;
    return COLL_OK;
}

/* Check the counts of allgatherv and reduce_scatterv: they are the same on all ranks. */
static int same_counts(struct coll__loader *l)
{
    struct coll__problem *pb = &l->plans->pbs[l->rank];
    const size_t *mine = pb->collective == COLL_ALLGATHERV ? pb->out_counts
                                                           : pb->in_counts;
    const struct coll__problem *first = &l->plans->pbs[0];
    const size_t *theirs = pb->collective == COLL_ALLGATHERV
                               ? first->out_counts
                               : first->in_counts;

    if (pb->collective != COLL_ALLGATHERV &&
        pb->collective != COLL_REDUCE_SCATTERV)
        return COLL_OK;
    if (memcmp(mine, theirs, (size_t)pb->nranks * sizeof(*mine)))
        return coll__scan_fault(&l->scan, "rank %d has other counts than rank "
                                "0; give all ranks the same", l->rank);
    pb->count = mine[l->rank];
    return COLL_OK;
}

/* Prepare a rank's problem and plan: the sizes of the buffers are known from here on.
 * This comes before the rank's first step, or at its end if it has none. */
static int begin_steps(struct coll__loader *l)
{
    struct coll__problem *pb = &l->plans->pbs[l->rank];
    int rc = COLL_OK;

    if (l->seen & SEEN_STEPS)
        return COLL_OK;
    for (int k = 0; k < 4 && rc == COLL_OK; k += 2) {
        if (needs_counts(pb, k / 2) && !(l->seen & 1u << k))
            rc = coll__scan_fault(&l->scan, "rank %d has no %s; add a line "
                                  "before its first step", l->rank,
                                  count_names[k]);
        else if (!(l->seen & 1u << k) && l->seen & 2u << k)
            rc = coll__scan_fault(&l->scan, "rank %d has %s without %s",
                                  l->rank, count_names[k + 1], count_names[k]);
        else if (l->seen & 1u << k)
            rc = place_parts(l, k);
    }
    if (rc == COLL_OK)
        rc = same_counts(l);
    if (rc)
        return rc;
    l->seen |= SEEN_STEPS;
    l->len[BUF_IN] = coll__problem_len(pb, BUF_IN);
    l->len[BUF_OUT] = coll__problem_len(pb, BUF_OUT);
    return COLL_OK;
}

static int end_rank(struct coll__loader *l)
{
    int rc = l->rank < 0 ? COLL_OK : begin_steps(l);

    if (rc || l->rank < 0)
        return rc;
    l->plans->plans[l->rank].tmp_len = l->len[BUF_TMP]; /* may have gaps */
    return coll__load_edges(l);
}

static int read_rank_count(struct coll__loader *l)
{
    struct coll__problem *pb = &l->plans->pbs[l->rank];
    size_t most = PTRDIFF_MAX / coll_type_size(pb->type) / (size_t)pb->nranks;
    int rc = coll__scan_size(&l->scan, "count", &pb->count);

    if (rc == COLL_OK && pb->count > most)
        return coll__scan_fault(&l->scan, "count %zu is larger than the "
                                "address space", pb->count);
    if (rc == COLL_OK && pb->count != l->head.count &&
        !coll__has_in_counts(pb->collective) &&
        !coll__has_out_counts(pb->collective))
        return coll__scan_fault(&l->scan, "count %zu: %s has the same count "
                                "on every rank", pb->count,
                                coll_collective_name(pb->collective));
    return rc;
}

/* In place needs both buffers. */
static int take_in_place(struct coll__loader *l)
{
    struct coll__problem *pb = &l->plans->pbs[l->rank];

    if (pb->collective == COLL_ALLTOALLV || pb->collective == COLL_BARRIER ||
        coll__problem_shape(pb, BUF_IN) == SHAPE_NONE ||
        coll__problem_shape(pb, BUF_OUT) == SHAPE_NONE)
        return coll__scan_fault(&l->scan, "in_place: rank %d of %s has no "
                                "buffer to share", l->rank,
                                coll_collective_name(pb->collective));
    pb->in_place = 1;
    return COLL_OK;
}

/* Read "rank 3 tmp 4096 in_place"; this ends the rank before it. */
static int read_rank(struct coll__loader *l)
{
    int rank, rc = coll__scan_int(&l->scan, "rank", 0, l->head.nranks - 1,
                                  &rank);

    if (rc)
        return rc;
    if (rank != l->rank + 1)
        return coll__scan_fault(&l->scan, "rank %d stands where rank %d must",
                                rank, l->rank + 1);
    l->rank = rank;
    l->seen = 0;
    l->n_edges = 0;
    l->len[BUF_TMP] = 0;
    while (rc == COLL_OK && coll__scan_word(&l->scan)) {
        if (coll__scan_is(&l->scan, "tmp"))
            rc = coll__scan_size(&l->scan, "tmp", &l->len[BUF_TMP]);
        else if (coll__scan_is(&l->scan, "count"))
            rc = read_rank_count(l);
        else if (coll__scan_is(&l->scan, "in_place"))
            rc = take_in_place(l);
        else
            rc = coll__scan_fault(&l->scan, "rank: '%.*s' is none of tmp, "
                                  "count and in_place",
                                  (int)min_size(l->scan.word_len, 24),
                                  l->scan.word);
    }
    if (rc == COLL_OK && l->len[BUF_TMP] > PTRDIFF_MAX)
        rc = coll__scan_fault(&l->scan, "tmp %zu is larger than the address "
                              "space", l->len[BUF_TMP]);
    return rc;
}

/* ---- the whole ------------------------------------------------------------ */

static int read_version(struct coll__loader *l)
{
    size_t version;
    int rc;

    if (!coll__scan_line(&l->scan) || !coll__scan_is(&l->scan, "coll_plan"))
        return coll__scan_fault(&l->scan, "this is no plan file; it begins "
                                "with 'coll_plan 1'");
    rc = coll__scan_size(&l->scan, "coll_plan", &version);
    if (rc == COLL_OK && version != 1)
        return coll__scan_fault(&l->scan, "version %zu of the format is not "
                                "known; libcoll %s reads version 1", version,
                                coll_version());
    return rc ? rc : coll__scan_ended(&l->scan);
}

static int read_line(struct coll__loader *l)
{
    int rc;

    if (coll__scan_is(&l->scan, "rank")) {
        rc = l->rank < 0 ? end_head(l) : end_rank(l);
        return rc ? rc : read_rank(l);
    }
    if (l->rank < 0)
        return read_head_line(l);
    for (int k = 0; k < 4; k++)
        if (coll__scan_is(&l->scan, count_names[k]))
            return read_counts(l, k);
    rc = begin_steps(l);
    return rc ? rc : coll__load_step(l);
}

int coll__plans_parse(const char *name, const char *text, size_t len,
                      struct coll__plans *plans)
{
    struct coll__loader l = {.plans = plans, .rank = -1};
    int rc;

    *plans = (struct coll__plans){.algorithm = "file"};
    coll__scan_init(&l.scan, name, text, len);
    rc = read_version(&l);
    while (rc == COLL_OK && coll__scan_line(&l.scan))
        rc = read_line(&l);
    if (rc == COLL_OK)
        rc = end_rank(&l);
    if (rc == COLL_OK && (l.rank < 0 || l.rank + 1 < l.head.nranks))
        rc = coll__scan_fault(&l.scan, "rank %d's part is missing",
                              l.rank + 1);
    free(l.edges);
    if (rc)
        coll__plans_fini(plans);
    return rc;
}

static int cannot_read(const char *path, int err)
{
    const char *why = err == EINVAL  ? "it is no regular file"
                      : err == EFBIG ? "it is larger than 64 MiB"
                                     : strerror(err);

    log_error("plan", "cannot read the plan file %s: %s; give the path of a "
              "file such as coll_plan --dump writes", path, why);
    return err == ENOMEM ? COLL_ERR_NOMEM : COLL_ERR_SYSTEM;
}

/* Read up to len bytes; the file may have fewer. */
static ssize_t read_all(int fd, char *text, size_t len)
{
    size_t done = 0;
    ssize_t n;

    do {
        n = read(fd, text + done, len - done);
        done += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && done < len) || (n < 0 && errno == EINTR));
    return n < 0 ? -1 : (ssize_t)done;
}

int coll__plans_read(const char *path, char **text, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
    struct stat info;
    ssize_t n = -1;

    if (fd < 0)
        return cannot_read(path, errno);
    *text = NULL;
    err = fstat(fd, &info) ? errno : S_ISREG(info.st_mode) ? 0 : EINVAL;
    if (!err && (size_t)info.st_size > MAX_FILE)
        err = EFBIG;
    if (!err && !(*text = malloc((size_t)info.st_size + 1)))
        err = ENOMEM;
    if (!err && (n = read_all(fd, *text, (size_t)info.st_size)) < 0)
        err = errno;
    close(fd);
    if (err) {
        free(*text);
        return cannot_read(path, err);
    }
    (*text)[n] = '\0';
    *len = (size_t)n;
    return COLL_OK;
}

int coll__plans_load(const char *path, struct coll__plans *plans)
{
    size_t len = 0;
    char *text;
    int rc = coll__plans_read(path, &text, &len);

    if (rc)
        return rc;
    rc = coll__plans_parse(path, text, len, plans);
    free(text);
    return rc;
}
