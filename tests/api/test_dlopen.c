/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dlopen.c - the library in programs that load it when they run, as
 * interpreters do: their threads are there already, and may be there still when
 * somebody has closed it; and so may be another copy of the library. */
#include "tests/support/mark.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LIBRARY ".libs/libcoll.so" /* where make has built it */
#define DEADLINE 40

static void *load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    ck_assert_msg(library != NULL, "%s", dlerror());
    return library;
}

/* The value of that entry of its dynamic section; 0: it has none. */
static size_t entry(void *library, ElfW(Sxword) tag)
{
    struct link_map *map;
    const ElfW(Dyn) * at;

    ck_assert_int_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    for (at = map->l_ld; at->d_tag != DT_NULL; at++)
        if (at->d_tag == tag)
            return at->d_un.d_val;
    return 0;
}

/* What of each thread must lie in its first block is at most what a few such
 * libraries share: some 1600 bytes for all that is loaded later. */
START_TEST(threads_need_no_room_of_their_first_block)
{
    void *library = load();

    ck_assert_uint_eq(entry(library, DT_FLAGS) & DF_STATIC_TLS, 0);
    dlclose(library);
}
END_TEST

/* Threads of its own and handlers at the program's end may still be within. */
START_TEST(what_is_closed_stays)
{
    void *library = load();

    ck_assert_ptr_nonnull(dlsym(library, "coll_version"));
    ck_assert_int_eq(dlclose(library), 0);
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_msg(library != NULL, "it has gone");
    dlclose(library);
}
END_TEST

/* Join the group by the loaded copy; its coll_comm_destroy() is *destroy. */
static struct coll_comm *join_by(void *library, const struct world_rank *me,
                                 int (**destroy)(struct coll_comm *comm))
{
    int (*create)(struct coll_comm * *comm, const struct coll_oob *oob,
                  const struct coll_config *config);
    struct coll_comm *comm;

    *(void **)&create = dlsym(library, "coll_comm_create_oob");
    *(void **)destroy = dlsym(library, "coll_comm_destroy");
    return create && *destroy && !create(&comm, &me->oob, NULL) ? comm : NULL;
}

/* As where a program is linked with one copy, and a plugin of it with another: each
 * has one communicator, which is the last one of its own. */
static int part_crosswise(struct world_rank *me)
{
    struct coll_comm *first = world_join(me), *second;
    int (*destroy)(struct coll_comm * comm);

    second = join_by(load(), me, &destroy);
    WORLD_CHECK(me, first && second && destroy != coll_comm_destroy);
    world_meet(me);
    if (me->rank % 2)
        WORLD_CHECK(me, destroy(second) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(first) == COLL_OK);
    if (me->rank % 2 == 0)
        WORLD_CHECK(me, destroy(second) == COLL_OK);
    return 0;
}

START_TEST(two_copies_end_in_any_order)
{
    ck_assert_int_eq(world_fork(3, part_crosswise, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *c;

    if (access(LIBRARY, R_OK)) {
        printf("SKIP: there is no %s\n", LIBRARY);
        return 77;
    }
    suite = suite_create("dlopen");
    c = suite_case(suite, "dlopen", DEADLINE + 20);
    tcase_add_test(c, threads_need_no_room_of_their_first_block);
    tcase_add_test(c, what_is_closed_stays);
    tcase_add_test(c, two_copies_end_in_any_order);
    return suite_run(suite);
}
