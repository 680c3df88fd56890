/* SPDX-License-Identifier: BSD-3-Clause */
/* scene.h - what the ranks of a test share in which some of them die. */
#ifndef COLL_TESTS_SCENE_H
#define COLL_TESTS_SCENE_H

#include <check.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

struct scene {
    unsigned victims;   /* bit r: rank r dies */
    atomic_int n_ready; /* ranks that were ready for the next death, in all */
    atomic_int n_told;  /* newcomers that know that they cannot join */
};

static inline struct scene *new_scene(unsigned victims)
{
    struct scene *scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(scene, MAP_FAILED);
    scene->victims = victims;
    return scene;
}

/* Wait until this many ranks have come here, in all. */
static inline void gather(struct scene *scene, int n)
{
    atomic_fetch_add(&scene->n_ready, 1);
    while (atomic_load(&scene->n_ready) < n)
        usleep(200);
}

#endif
