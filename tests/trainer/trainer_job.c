/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_job.c - what main() does around trainer_epoch(), for forked ranks. */
#include "tests/trainer/trainer_job.h"
#include "trainer/ddp.h"
#include "trainer/error.h"

#include <check.h>
#include <stdio.h>
#include <sys/mman.h>

void *job_page(size_t len)
{
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(page, MAP_FAILED);
    return page;
}

void job_args(struct args *args)
{
    char *argv[] = {(char *)"coll_train", NULL};

    ck_assert_int_eq(args_parse(args, 1, argv), 0);
    args->device = "cpu";
    args->dataset = "synthetic";
    args->limit_train = 96;
    args->limit_test = 50;
    args->batch_size = 8;
    args->epochs = 2;
    args->lr_scale = LR_NONE;
}

int job_start(struct world_rank *me, const struct args *args, struct trainer *t,
              struct ddp *d)
{
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = args->deterministic};
    struct coll_comm *comm;

    WORLD_CHECK(me, coll_comm_create_oob(&comm, &me->oob, &config) == COLL_OK);
    ddp_adopt(d, comm);
    *t = (struct trainer){.args = args, .ddp = d};
    if (trainer_init(t)) {
        fprintf(stderr, "rank %d: %s\n", me->rank, train_error());
        return 1;
    }
    return 0;
}

int job_end(struct world_rank *me, struct trainer *t, struct ddp *d)
{
    trainer_fini(t);
    WORLD_CHECK(me, !ddp_fini(d));
    return 0;
}

void job_no_progress(void *arg, const struct progress_stats *p)
{
    (void)arg;
    (void)p;
}
