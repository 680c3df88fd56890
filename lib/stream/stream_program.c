/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_program.c - find the program of a call for a stream, or make it. */
#include "lib/stream/stream_program.h"
#include "lib/comm/comm.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_stage.h"
#include "lib/exec/exec.h"
#include "lib/order/order.h"
#include "lib/proof/plan_set.h"
#include "lib/run/request.h"
#include "lib/stream/programs.h"
#include "lib/stream/calls.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/stream.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PROGRAMS 128

/* ---- which shape ---------------------------------------------------------------- */

static uint64_t add_numbers(uint64_t hash, const size_t *numbers, int n)
{
    for (int i = 0; numbers && i < n; i++)
        hash = coll__hash_add(hash, numbers[i]);
    return hash;
}

static uint64_t hash_of(const struct coll__problem *pb,
                        const struct coll__stream_manner *how)
{
    uint64_t hash =
        coll__hash_add((uint64_t)pb->collective << 16 |
                           (uint64_t)pb->type << 8 | (uint64_t)pb->op,
                       pb->count);

    hash =
        coll__hash_add(hash, (uint64_t)(uint32_t)pb->root << 8 | how->direct);
    hash = add_numbers(hash, pb->in_counts, pb->nranks);
    return add_numbers(hash, pb->out_counts, pb->nranks);
}

static int is_manner(const struct coll__stream_manner *a,
                     const struct coll__stream_manner *b)
{
    return a->named == b->named && a->direct == b->direct &&
           !memcmp(a->regs, b->regs, sizeof(a->regs));
}

static int is_op(const struct coll__op *a, const struct coll__op *b)
{
    return a->base == b->base && a->fn == b->fn && a->arg == b->arg &&
           a->commutes == b->commutes && a->is_premul == b->is_premul &&
           coll__same_factor(&a->pre, &b->pre) &&
           coll__same_factor(&a->post, &b->post);
}

/* ---- making one ----------------------------------------------------------------- */

static void program_free(struct coll__cuda_held *held)
{
    struct coll__stream_program *program = (struct coll__stream_program *)held;

    coll__prog_destroy(program->prog);
    free(program->numbers);
    free(program);
}

static int read_in_place(struct coll__stream_program *program,
                         const struct coll__algo *algo,
                         const struct coll__problem *pb,
                         const struct coll__slots *slots)
{
    struct coll__direct of = {algo, pb, slots, program->how.direct};
    struct coll__span *direct;
    int rc =
        coll__plan_direct_reads(&of, coll__prog_plan(program->prog), &direct);

    return rc ? rc : coll__prog_read_in_place(program->prog, direct);
}

/* Take a plan of a file (COLL_PLAN_FILE). */
static int read_plan(const void *set, const struct coll__problem *pb,
                     const struct coll__slots *slots, struct coll__plan *plan)
{
    int rc = coll__plan_set_find(set, pb, plan);

    if (rc == COLL_OK && (rc = coll__plan_fit(plan, slots->slot)))
        coll__plan_fini(plan);
    return rc;
}

/* Make the plan for pb: that of a file if algo is NULL. */
static int build(const struct coll_comm *comm, const struct coll__algo *algo,
                 const struct coll__problem *pb,
                 const struct coll__slots *slots, struct coll__plan *plan)
{
    struct coll__builder of_file = {read_plan, comm->plan_set};

    return algo ? coll__plan_build_in_slot_order(algo, pb, slots, plan)
                : coll__plan_in_slot_order(&of_file, pb, slots, plan);
}

/* Build the plan for pb, whose arrays are the caller's, and bind it. */
static int bind(struct coll__stream_program *program, struct coll_comm *comm,
                const struct coll__stream_call *call,
                const struct coll__algo *algo, const struct coll__problem *pb)
{
    const struct coll__stream_tp *tp = comm->links.routes.streams;
    int by_kernel = coll__is_one_kernel(tp, pb);
    struct coll__slots slots = {.n_slots = tp->n_slots,
                                .slot = by_kernel ? tp->kernel.slot : tp->slot};
    struct coll__op op = coll__own_op_bind(&program->own, comm, &call->op);
    struct coll__binding to = {.op = &op,
                               .routes = &comm->links.routes,
                               .device = &coll__device_cuda,
                               .is_lent_scratch = 1,
                               .by_kernel = by_kernel};
    struct coll__plan plan;
    int rc;

    if (!by_kernel)
        coll__slots_for_levels(pb, &slots);
    rc = build(comm, algo, &program->pb, &slots, &plan);

    if (rc == COLL_OK)
        rc = coll__prog_create(&program->pb, &plan, &to, &program->prog);
    if (rc == COLL_OK && program->how.direct)
        rc = read_in_place(program, algo, pb, &slots);
    return rc;
}

/* Is there a plan for the call in a file? */
static int is_in_file(const struct coll_comm *comm,
                      const struct coll__stream_call *call,
                      const struct coll__stream_manner *how)
{
    struct coll__plan plan;
    int rc = how->named ? COLL_ERR_UNSUPPORTED
                        : coll__plan_set_find(comm->plan_set, &call->pb, &plan);

    if (rc == COLL_OK)
        coll__plan_fini(&plan);
    return rc == COLL_OK;
}

/* The algorithm is chosen for the call, the plan is of the problem `as`, in which buffers
 * are read in place. */
static int make(struct coll_comm *comm, const struct coll__stream_call *call,
                const struct coll__problem *as,
                const struct coll__stream_manner *how,
                struct coll__stream_program **out)
{
    const struct coll__algo *algo = NULL;
    struct coll__stream_program *program;
    int rc = is_in_file(comm, call, how)
                 ? COLL_OK
                 : coll__request_choose(comm, &call->args, &call->pb, &algo);

    if (rc)
        return rc;
    program = calloc(1, sizeof(*program));
    if (program) {
        program->held.end = program_free;
        program->pb = *as;
        program->how = *how;
        program->ticket = comm->stream->stage->last;
    }
    if (!program || coll__request_numbers(&program->pb, &program->numbers)) {
        log_error("api", "no memory for an operation of a stream");
        free(program);
        return COLL_ERR_NOMEM;
    }
    rc = bind(program, comm, call, algo, as);
    if (rc)
        program_free(&program->held);
    else
        *out = program;
    return rc;
}

/* ---- the list ------------------------------------------------------------------- */

static void forget(struct coll__stream_program_list *list,
                   struct coll__stream_program **at)
{
    struct coll__stream_program *program = *at;

    *at = program->next;
    coll__cuda_held_leave(&program->held);
    list->n--;
}

static int may_go(const struct coll__stream_program *program,
                  const struct coll_comm *comm)
{
    return !coll__prog_is_read(program->prog) ||
           (!coll__cuda_is_held(&program->held) &&
            coll__programs_has_finished(comm, program->ticket));
}

/* Free the least recently used program that no stream or graph needs, if there is one. */
static void forget_oldest(struct coll__stream_program_list *list,
                          const struct coll_comm *comm)
{
    struct coll__stream_program **oldest = NULL;

    for (int i = 0; i < PROGRAM_LISTS; i++)
        for (struct coll__stream_program **at = &list->lists[i]; *at;
             at = &(*at)->next)
            if ((!oldest || (*at)->used < (*oldest)->used) && may_go(*at, comm))
                oldest = at;
    if (oldest)
        forget(list, oldest);
}

static void add(struct coll__stream_program_list *list,
                const struct coll_comm *comm,
                struct coll__stream_program *program)
{
    struct coll__stream_program **at;

    if (list->n >= MOST_PROGRAMS)
        forget_oldest(list, comm);
    at = &list->lists[program->hash % PROGRAM_LISTS];
    program->next = *at;
    *at = program;
    list->n++;
}

/* A name that is no algorithm's makes no program: the choice refuses it. */
static const struct coll__algo *named(const struct coll_args *args)
{
    return args->algo && *args->algo
               ? coll__algo_find(args->collective, args->algo)
               : NULL;
}

int coll__stream_program_have(struct coll__stream_program_list *list,
                              struct coll_comm *comm,
                              const struct coll__stream_call *call,
                              struct coll__stream_manner *how,
                              struct coll__stream_program **out)
{
    struct coll__problem as = coll__problem_read_direct(&call->pb, how->direct);
    uint64_t hash = hash_of(&as, how);
    struct coll__stream_program *at = list->lists[hash % PROGRAM_LISTS];
    int rc;

    how->named = named(&call->args);
    while (at &&
           !(at->hash == hash && is_manner(&at->how, how) &&
             is_op(&at->own.op, &call->op) && coll__same_problem(&at->pb, &as)))
        at = at->next;
    if (!at) {
        rc = make(comm, call, &as, how, &at);
        if (rc)
            return rc;
        at->hash = hash;
        add(list, comm, at);
    }
    at->used = ++list->n_calls;
    *out = at;
    return COLL_OK;
}

void coll__stream_program_bytes(const struct coll__stream_program_list *list,
                                struct coll_mem_stats *stats)
{
    for (int i = 0; i < PROGRAM_LISTS; i++)
        for (struct coll__stream_program *p = list->lists[i]; p; p = p->next) {
            stats->plans += sizeof(*p) + coll__prog_bytes(p->prog);
            stats->device += coll__prog_on_device(p->prog);
        }
}

void coll__stream_program_forget_all(struct coll__stream_program_list *list)
{
    for (int i = 0; i < PROGRAM_LISTS; i++)
        while (list->lists[i])
            forget(list, &list->lists[i]);
}
