/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_apart.c - ranks whose GPUs are not joined, over the fake CUDA driver: the
 * log says why, and calls work by way of the host, in graphs as well. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100 };

struct scene {
    const char *how, *why;       /* in the sentence */
    const char *name, *set;      /* of the environment */
    int has_driver, has_context; /* of rank 1, when the communicator is made */
    int n_devices;
};

#define CARRIED "through the hosts where these do not reach each other: "
#define PLAIN "pass through the host: "

static const struct scene scenes[] = {
    {"go from GPU to GPU", "", "FAKE_CUDA_PEERS", "1", 1, 1, 2},
    {CARRIED,
     "GPU does not reach rank 1's: GPU 0 cannot use the memory of GPU 1; see "
     "nvidia-smi",
     "FAKE_CUDA_PEERS", "0", 1, 1, 2},
    {CARRIED,
     "; containers need --ipc=host --pid=host for CUDA IPC, and MIG has none",
     "FAKE_CUDA_IPC", "0", 1, 1, 1},
    {PLAIN,
     "rank 1 had no current CUDA context when the communicator was made; call "
     "cudaSetDevice() before",
     "FAKE_CUDA_PEERS", "1", 1, 0, 1},
    {PLAIN,
     "rank 1 had no CUDA driver in its process when the communicator was made",
     "FAKE_CUDA_PEERS", "1", 0, 0, 1},
};

static int is_apart(struct world_rank *me)
{
    const struct scene *scene = me->arg;
    int has_driver = !me->rank || scene->has_driver;
    struct coll_comm *comm;
    CUstream stream;
    CUgraph graph;
    char *at;

    device_listen();
    if (has_driver) {
        fake_open();
        OK(cu.Init(0));
    }
    if (!me->rank || scene->has_context)
        fake_device(me->rank % scene->n_devices);
    comm = world_join(me);
    WORLD_CHECK(me, comm);
    if (!strstr(device_said(), scene->how) ||
        !strstr(device_said(), scene->why)) {
        fprintf(stderr, "%s\n", device_said());
        return 1;
    }
    if (!has_driver)
        fake_open();
    OK(cu.Init(0));
    fake_device(me->rank % scene->n_devices);
    stream = fake_stream();
    at = (char *)fake_memory(4 * COUNT);
    WORLD_CHECK(
        me, !coll_allreduce(at, at, COUNT, COLL_F32, COLL_SUM, comm, stream));
    OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORLD_CHECK(
        me, !coll_allreduce(at, at, COUNT, COLL_F32, COLL_SUM, comm, stream));
    OK(cu.StreamEndCapture(stream, &graph));
    OK(cu.GraphDestroy(graph));
    OK(cu.StreamSynchronize(stream));
    return coll_comm_destroy(comm) != COLL_OK;
}

/* _i: the scene */
START_TEST(a_reason_is_told)
{
    struct scene scene = scenes[_i];

    setenv("COLL_LOG", "info", 1);
    setenv("FAKE_CUDA_DEVICES", scene.n_devices > 1 ? "2" : "1", 1);
    setenv(scene.name, scene.set, 1);
    ck_assert_int_eq(device_fork(2, is_apart, &scene), 0);
}
END_TEST

/* What is older than 12.0 serves nobody: one sentence, and no call. */
static int is_too_old(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int32_t at[COUNT] = {0};

    WORLD_CHECK(me, comm);
    EXPECT(me,
           coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM, comm,
                          CU_STREAM_PER_THREAD),
           COLL_ERR_UNSUPPORTED, "older than 12.0; update it");
    WORLD_CHECK(me,
                !coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM, comm, NULL));
    return coll_comm_destroy(comm) != COLL_OK;
}

static int open_old(struct world_rank *me)
{
    WORLD_CHECK(me, dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL));
    return is_too_old(me);
}

START_TEST(a_driver_that_is_too_old_is_told)
{
    setenv("FAKE_CUDA_VERSION", "11080", 1);
    ck_assert_int_eq(device_fork(2, open_old, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_apart");
    TCase *tc = tcase_create("cuda_apart");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_reason_is_told, 0,
                        sizeof(scenes) / sizeof(*scenes));
    tcase_add_test(tc, a_driver_that_is_too_old_is_told);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
