/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.c - libcoll's kernels on device 0: are they right, and how fast.
 *
 * check runs the cases of test_cuda_kernels.c, bench is in bench.c.  The driver is
 * the product's, lib/device/cuda_driver.h, whose entries kernels_driver.c tries.
 */
#include "tests/gpu/bench.h"
#include "tests/gpu/kernels_driver.h"
#include "lib/device/cuda_kernels.h"
#include "lib/util/util.h"
#include "tests/support/kernel_cases.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: kernels check [--quick] [--plan] [TYPE]...\n"
    "       kernels bench [--quick] [--most BYTES] [--json FILE]\n"
    "Tries libcoll's kernels on device 0, or measures them against its copy.\n"
    "      --quick        fewer bytes, fewer numbers of blocks\n"
    "      --plan         check each as a step of the kernel that runs plans\n"
    "      --most BYTES   bench: of no more (268435456)\n"
    "      --json FILE    where bench writes its report (kernels.json)\n"
    "  -h, --help         this text\n"
    "Exits with 0, with 1 when a kernel is wrong, 2 for wrong arguments, 77\n"
    "without a driver or a device.\n";

struct options {
    int is_bench, is_quick, is_plan;
    size_t most;
    const char *json;
    char **types;
};

static struct kernels kernels; /* for what kernel_cases.h calls */

static const struct coll__cuda *driver; /* the product's own way to it */

/* Make device 0 current and load the image that the program holds. */
static int start(void)
{
    char why[512];
    CUdevice device;
    double began;

    driver = kernels_driver(why, sizeof(why));
    if (!driver) {
        fprintf(stderr, "kernels: the product's driver: %s\n", why);
        return -1;
    }
    gpu_must(driver->cuDeviceGet(&device, 0), "cuDeviceGet");
    gpu_must(driver->cuDeviceGetAttribute(
                 &kernels.processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                 device),
             "cuDeviceGetAttribute");
    began = gpu_now();
    gpu_must(driver->cuModuleLoadData(&kernels.module, coll__cuda_image),
             "cuModuleLoadData");
    kernels.load_ms = (gpu_now() - began) * 1e3;
    return 0;
}

CUfunction kernels_entry(const struct kernels *all, const char *name)
{
    CUfunction fn;

    gpu_must(driver->cuModuleGetFunction(&fn, all->module, name), name);
    return fn;
}

static char *device_alloc(size_t len)
{
    CUdeviceptr ptr;

    gpu_must(driver->cuMemAlloc(&ptr, len), "cuMemAlloc");
    return (char *)(uintptr_t)ptr;
}

static void device_release(char *ptr)
{
    gpu_must(driver->cuMemFree((CUdeviceptr)(uintptr_t)ptr), "cuMemFree");
}

static void device_put(char *device, const void *host, size_t len)
{
    if (len)
        gpu_must(
            driver->cuMemcpyHtoD((CUdeviceptr)(uintptr_t)device, host, len),
            "cuMemcpyHtoD");
}

static void device_get(void *host, const char *device, size_t len)
{
    if (len)
        gpu_must(
            driver->cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)device, len),
            "cuMemcpyDtoH");
}

static void device_launch(const char *entry, unsigned blocks, unsigned threads,
                          void **params)
{
    gpu_must(driver->cuLaunchKernel(kernels_entry(&kernels, entry), blocks, 1,
                                    1, threads, 1, 1, 0, NULL, params, NULL),
             entry);
    gpu_must(driver->cuCtxSynchronize(), entry);
}

/* A step and its state in memory that is made for them, once. */
static void plan_launch(const char *entry, unsigned blocks, unsigned threads,
                        void **params)
{
    static CUdeviceptr memory;
    static CUfunction kernel;
    struct image {
        struct coll__cuda_step step;
        uint32_t state[COLL__CUDA_STATE_WORDS(1)];
    } image = {.step = kernel_step(entry, params)};
    uint32_t n = 1;
    CUdeviceptr state, none = 0;
    void *args[] = {&memory, &n, &state, &none, &none, &none, &none};

    if (!memory) {
        gpu_must(driver->cuMemAlloc(&memory, sizeof(image)), "cuMemAlloc");
        kernel = kernels_entry(&kernels, COLL__CUDA_PLAN);
    }
    if (blocks > (unsigned)kernels.processors) /* all wait for all */
        blocks = (unsigned)kernels.processors;
    state = memory + offsetof(struct image, state);
    gpu_must(driver->cuMemcpyHtoD(memory, &image, sizeof(image)),
             "cuMemcpyHtoD");
    gpu_must(driver->cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0,
                                    NULL, args, NULL),
             entry);
    gpu_must(driver->cuCtxSynchronize(), entry);
}

static struct machine device = {.alloc = device_alloc,
                                .release = device_release,
                                .put = device_put,
                                .get = device_get,
                                .launch = device_launch,
                                .large = 1 << 20};

/* What the driver says of the kernels' registers and local memory. */
static void show_resources(void)
{
    static const char *const some[] = {
        "coll_copy",       "coll_sum_f32",  "coll_sum_f16", "coll_sum_bf16",
        "coll_sum_f64",    "coll_sum_u8",   "coll_max_i8",  "coll_scale_f32",
        "coll_scale_bf16", "coll_scale_i8", COLL__CUDA_PLAN};

    for (size_t i = 0; i < ARRAY_LEN(some); i++) {
        CUfunction fn = kernels_entry(&kernels, some[i]);
        int registers = 0, local = 0;

        gpu_must(driver->cuFuncGetAttribute(&registers,
                                            CU_FUNC_ATTRIBUTE_NUM_REGS, fn),
                 "cuFuncGetAttribute");
        gpu_must(driver->cuFuncGetAttribute(
                     &local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, fn),
                 "cuFuncGetAttribute");
        printf("%-16s %3d registers, %d bytes of local memory\n", some[i],
               registers, local);
    }
}

static int is_wanted(enum coll_type type, char **types)
{
    if (!*types)
        return 1;
    while (*types && strcmp(*types, coll_type_name(type)))
        types++;
    return *types != NULL;
}

static int check(char **types)
{
    char why[512];
    int n_failed = 0;

    for (int type = 0; type < COLL_N_TYPES; type++) {
        double began = gpu_now();
        long before = device.n_checks;
        int status;

        if (!is_wanted((enum coll_type)type, types))
            continue;
        status = kernel_check_reductions(&device, (enum coll_type)type, why,
                                         sizeof(why)) ||
                 kernel_check_others(&device, (enum coll_type)type, why,
                                     sizeof(why)) ||
                 kernel_check_divisions(&device, (enum coll_type)type, why,
                                        sizeof(why));
        printf("%-5s %6ld kernels in %.1f s: %s\n",
               coll_type_name((enum coll_type)type), device.n_checks - before,
               gpu_now() - began, status ? why : "right");
        n_failed += status != 0;
    }
    return n_failed != 0;
}

static int wrong(const char *what, const char *word)
{
    fprintf(stderr, "kernels: %s%s; see --help\n", what, word);
    return 2;
}

static int is_type(const char *name)
{
    for (int type = 0; type < COLL_N_TYPES; type++)
        if (!strcmp(coll_type_name((enum coll_type)type), name))
            return 1;
    return 0;
}

/* The status to exit with, or -1 to go on. */
static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"quick", 0, 0, 'q'}, {"plan", 0, 0, 'p'}, {"most", 1, 0, 'm'},
        {"json", 1, 0, 'J'},  {"help", 0, 0, 'h'}, {NULL, 0, NULL, 0}};
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (c == 'q')
            o->is_quick = 1;
        else if (c == 'p')
            o->is_plan = 1;
        else if (c == 'm')
            o->most = strtoul(optarg, NULL, 10);
        else if (c == 'J')
            o->json = optarg;
        else if (c == 'h')
            return fputs(usage, stdout) == EOF ? 2 : 0;
        else
            return wrong("unknown option ", argv[optind - 1]);
    }
    if (o->most < BENCH_LEAST)
        return wrong("--most is at least 4096", "");
    o->types = argv + optind;
    if (!*o->types)
        return wrong("check or bench", "");
    o->is_bench = !strcmp(*o->types, "bench");
    if (!o->is_bench && strcmp(*o->types, "check"))
        return wrong("neither check nor bench: ", *o->types);
    o->types++;
    for (char **type = o->types; *type; type++)
        if (o->is_bench || !is_type(*type))
            return wrong("no type ", *type);
    return -1;
}

int main(int argc, char **argv)
{
    struct options o = {.most = SIZE_MAX, .json = "kernels.json"};
    const struct gpu_found *found = &kernels.found;
    int status = parse(argc, argv, &o);

    if (status >= 0)
        return status;
    gpu_look(&kernels.found);
    if (*found->why) {
        printf("kernels: skipped: %s\n", found->why);
        return 77;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (start())
        return 1;
    printf("%s, driver of CUDA %d.%d, %d processors, image loaded in %.1f ms\n",
           found->name, found->cuda / 1000, found->cuda % 1000 / 10,
           kernels.processors, kernels.load_ms);
    if (o.is_bench)
        return bench(&kernels, o.is_quick, o.most, o.json);
    if (o.is_quick)
        device.large = 20011;
    if (o.is_plan)
        device.launch = plan_launch;
    show_resources();
    return check(o.types);
}
