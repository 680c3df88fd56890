/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - opening the driver, and what several programs need of it. */
#include "tests/gpu/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

struct gpu_entries cu;
static void *library;

static const char *find(const char *name, void **entry, int version)
{
    static char why[160];
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult rc;

    rc = cu.GetProcAddress(name, entry, version, CU_GET_PROC_ADDRESS_DEFAULT,
                           &status);
    if (rc == CUDA_SUCCESS && *entry)
        return NULL;
    snprintf(why, sizeof(why), "the driver has no %s of CUDA %d (code %d)",
             name, version, (int)rc);
    return why;
}

const char *gpu_open(void)
{
    static char why[200];
    const char *missing = NULL;

    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, sizeof(why), "no CUDA driver: %s", dlerror());
        return why;
    }
    cu.GetProcAddress =
        (__typeof__(cu.GetProcAddress))dlsym(library, "cuGetProcAddress_v2");
    if (!cu.GetProcAddress)
        return "the CUDA driver is older than 12.0: no cuGetProcAddress_v2";
#define GPU_FIND(name)                                                         \
    if (!missing)                                                              \
        missing = find("cu" #name, (void **)&cu.name, CUDA_VERSION);
    GPU_ENTRIES(GPU_FIND)
#undef GPU_FIND
#define GPU_FIND_OLD(name)                                                     \
    if (!missing)                                                              \
        missing = find("cu" #name, (void **)&cu.name, 12000);
    GPU_OLD_ENTRIES(GPU_FIND_OLD)
#undef GPU_FIND_OLD
    return missing;
}

void *gpu_symbol(const char *name) { return dlsym(library, name); }

const char *gpu_code(CUresult rc)
{
    static char texts[8][64];
    static int next;
    char *text = texts[next++ % 8];
    const char *name = NULL;

    if (cu.GetErrorName)
        cu.GetErrorName(rc, &name);
    if (!name)
        name = "?";
    if (!strncmp(name, "CUDA_ERROR_", 11))
        name += 11;
    else if (!strncmp(name, "CUDA_", 5))
        name += 5;
    snprintf(text, sizeof(texts[0]), "%d %s", (int)rc, name);
    return text;
}

CUresult gpu_start(CUcontext *ctx)
{
    CUdevice device;
    CUresult rc;

    rc = cu.Init(0);
    if (rc == CUDA_SUCCESS)
        rc = cu.DeviceGet(&device, 0);
    if (rc == CUDA_SUCCESS)
        rc = cu.DevicePrimaryCtxRetain(ctx, device);
    if (rc == CUDA_SUCCESS)
        rc = cu.CtxSetCurrent(*ctx);
    return rc;
}

void gpu_must(CUresult rc, const char *call)
{
    if (rc == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", call, gpu_code(rc));
    exit(1);
}

void gpu_look(struct gpu_found *found)
{
    const char *why = gpu_open();
    CUdevice device;
    CUresult rc;

    memset(found, 0, sizeof(*found));
    if (why) {
        snprintf(found->why, sizeof(found->why), "%s", why);
        return;
    }
    cu.DriverGetVersion(&found->cuda);
    rc = cu.Init(0);
    if (rc == CUDA_SUCCESS)
        rc = cu.DeviceGet(&device, 0);
    if (rc == CUDA_SUCCESS)
        rc = cu.DeviceGetName(found->name, sizeof(found->name), device);
    if (rc != CUDA_SUCCESS)
        snprintf(found->why, sizeof(found->why), "the driver finds no GPU: %s",
                 gpu_code(rc));
}

int gpu_probe_main(void)
{
    struct gpu_found found;

    gpu_look(&found);
    if (*found.why)
        printf("W%s\n", found.why);
    else
        printf("G%d %s\n", found.cuda, found.name);
    return 0;
}

void gpu_probe(struct gpu_found *found)
{
    char line[300] = "";
    FILE *f = popen("exec /proc/$PPID/exe --probe", "r");

    memset(found, 0, sizeof(*found));
    if (!f || !fgets(line, sizeof(line), f))
        snprintf(line, sizeof(line), "Wthe driver's first call did not return");
    if (f)
        pclose(f);
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "G%d %99[^\n]", &found->cuda, found->name) != 2)
        snprintf(found->why, sizeof(found->why), "%.190s", line + 1);
}

CUfunction gpu_kernel(const char *name)
{
    static CUmodule module;
    CUfunction function = NULL;

    if (!module && cu.ModuleLoadData(&module, gpu_ptx) != CUDA_SUCCESS)
        return NULL;
    if (cu.ModuleGetFunction(&function, module, name) != CUDA_SUCCESS)
        return NULL;
    return function;
}

CUresult gpu_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream s,
                    void **args)
{
    return cu.LaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, args, NULL);
}

void gpu_put_json(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', f);
        if ((unsigned char)*text >= ' ')
            fputc(*text, f);
    }
    fputc('"', f);
}

void gpu_put_head(FILE *f, const char *program, const struct gpu_found *found)
{
    struct utsname host;
    time_t now = time(NULL);
    char day[32];

    uname(&host);
    strftime(day, sizeof(day), "%Y-%m-%d", gmtime(&now));
    fprintf(f, "{\n  \"program\": \"%s\", \"date\": \"%s\",\n", program, day);
    fprintf(f, "  \"kernel\": \"%s\", \"gpu\": ", host.release);
    gpu_put_json(f, found->name);
    fprintf(f, ",\n  \"driver_cuda\": %d, \"header_cuda\": %d,\n", found->cuda,
            CUDA_VERSION);
}

int gpu_wrong(const struct gpu_options *o, const char *what, const char *word)
{
    fprintf(stderr, "%s: %s%s; see --help\n", o->program, what, word);
    return 2;
}

/* One option; 0 where that was all. */
static int take_option(struct gpu_options *o, int c)
{
    switch (c) {
    case 'l':
        o->is_list = 1;
        break;
    case 't':
        o->seconds = atoi(optarg);
        break;
    case 'w':
        o->within = atoi(optarg);
        break;
    case 'J':
        o->json = optarg;
        break;
    case 'h':
        fputs(o->usage, stdout);
        return 0;
    default:
        o->take(o, c, optarg);
    }
    return 1;
}

/* The options of all, and behind them those of the program. */
static void list_options(const struct gpu_options *o, struct option *longs,
                         size_t room)
{
    static const struct option ours[] = {{"list", 0, 0, 'l'},
                                         {"time", 1, 0, 't'},
                                         {"within", 1, 0, 'w'},
                                         {"json", 1, 0, 'J'},
                                         {"help", 0, 0, 'h'}};
    size_t n = sizeof(ours) / sizeof(ours[0]);

    memcpy(longs, ours, sizeof(ours));
    for (const struct option *own = o->own; own->name && n + 1 < room; own++)
        longs[n++] = *own;
    longs[n] = (struct option){NULL, 0, NULL, 0};
}

int gpu_parse(int argc, char **argv, struct gpu_options *o)
{
    struct option longs[16];
    char letters[32];
    int c;

    list_options(o, longs, sizeof(longs) / sizeof(longs[0]));
    snprintf(letters, sizeof(letters), "lt:h%s", o->own_letters);
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (c == '?')
            return gpu_wrong(o, "unknown option ", argv[optind - 1]);
        if (!take_option(o, c))
            return 0;
    }
    if (o->seconds < 1)
        return gpu_wrong(o, "--time is at least 1", "");
    if (o->within < 1)
        return gpu_wrong(o, "--within is at least 1", "");
    o->names = argv + optind;
    o->n_names = argc - optind;
    return -1;
}

int gpu_is_chosen(const struct gpu_options *o, const char *name,
                  const char *other)
{
    for (int i = 0; i < o->n_names; i++)
        if (!strcmp(o->names[i], name) ||
            (other && !strcmp(o->names[i], other)))
            return 1;
    return o->n_names == 0;
}

double gpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int gpu_tell(int fd, const void *at, size_t len)
{
    for (const char *p = at; len;) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n <= 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int gpu_hear(int fd, void *at, size_t len)
{
    for (char *p = at; len;) {
        ssize_t n = read(fd, p, len);

        if (n <= 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

int gpu_tell_fd(int fd, int passed)
{
    union control control = {0};
    struct iovec one = {.iov_base = (char[]){'f'}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};

    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &passed, sizeof(int));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int gpu_hear_fd(int fd)
{
    union control control = {0};
    char byte;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    int passed = -1;

    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(fd, &message, 0) != 1 || control.head.cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(&passed, CMSG_DATA(&control.head), sizeof(int));
    return passed;
}
