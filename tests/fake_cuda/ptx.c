/* SPDX-License-Identifier: BSD-3-Clause */
/* ptx.c - PTX texts: no compiler, but the kernels of tests/gpu/gpu_ptx.c by hand.
 *
 * A text is refused as the driver refuses it (H100, kernel/images); a kernel that is
 * not in the list below counts as one that does not compile.
 */
#include "tests/fake_cuda/fake.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- texts --------------------------------------------------------------- */

static const char entry_word[] = ".visible .entry ";

static int next_entry(const char **text, char *name, size_t room)
{
    const char *at = strstr(*text, entry_word);
    size_t len;

    if (!at)
        return 0;
    at += strlen(entry_word);
    len = strcspn(at, " (\n");
    *text = at + len;
    snprintf(name, room, "%.*s", (int)len, at);
    return 1;
}

int ptx_has(const char *text, const char *name)
{
    char one[64];

    while (next_entry(&text, one, sizeof(one)))
        if (!strcmp(one, name))
            return 1;
    return 0;
}

CUresult ptx_check(const char *text)
{
    int major = 0, minor = 0, target = 0;
    const char *at = strstr(text, ".target sm_");
    char name[64];

    if (sscanf(text, " .version %d.%d", &major, &minor) != 2)
        return CUDA_ERROR_INVALID_IMAGE;
    if (major > 9)
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (!at || sscanf(at, ".target sm_%d", &target) != 1 || target > 90)
        return CUDA_ERROR_INVALID_PTX;
    while (next_entry(&text, name, sizeof(name)))
        if (!ptx_kernel(name))
            return CUDA_ERROR_INVALID_PTX;
    return CUDA_SUCCESS;
}

/* ---- kernels ------------------------------------------------------------- */

static uint64_t wide(void **params, int i) { return *(uint64_t *)params[i]; }
static uint32_t word(void **params, int i) { return *(uint32_t *)params[i]; }

/* Where the kernel finds len bytes, aligned to `align`: else the fault. */
static CUresult at(struct stream *s, uint64_t address, size_t len, size_t align,
                   void *out)
{
    void *view = memory_view(address, len, s->ctx);

    if (!view)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (address % align)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    memcpy(out, &view, sizeof(view));
    return CUDA_SUCCESS;
}

static uint64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static CUresult add_one(struct stream *s, void **p)
{
    uint32_t *to;
    CUresult rc = at(s, wide(p, 0), 4, 4, &to);

    if (!rc)
        ++*to;
    return rc;
}

static CUresult store(struct stream *s, void **p)
{
    _Atomic uint32_t *to;
    CUresult rc = at(s, wide(p, 0), 4, 4, &to);

    if (!rc)
        atomic_store(to, word(p, 1));
    return rc;
}

/* A misaligned address is found before one that is unknown. */
static CUresult store_checked(struct stream *s, void **p)
{
    return wide(p, 0) % 4 ? CUDA_ERROR_MISALIGNED_ADDRESS : store(s, p);
}

static CUresult stop(struct stream *s, void **p)
{
    (void)s, (void)p;
    return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult hold(struct stream *s, void **p)
{
    uint64_t until = nanoseconds() + wide(p, 0);

    (void)s;
    while (nanoseconds() < until && !fake_error())
        sched_yield();
    return CUDA_SUCCESS;
}

/* Polls until the word is (or, cyclic, has come to) value; 0 when the time is up. */
static int poll_word(_Atomic uint32_t *flag, uint32_t value, int is_cyclic,
                     uint64_t until)
{
    unsigned n_naps = 0;

    while (nanoseconds() < until && !fake_error()) {
        uint32_t is = atomic_load(flag);

        if (is_cyclic ? (int32_t)(is - value) >= 0 : is == value)
            return 1;
        memops_nap(&n_naps);
    }
    return 0;
}

static CUresult await(struct stream *s, void **p)
{
    uint64_t until = nanoseconds() + wide(p, 2);
    _Atomic uint32_t *flag, *met;
    CUresult rc = at(s, wide(p, 0), 4, 4, &flag);

    if (!rc)
        rc = at(s, wide(p, 3), 4, 4, &met);
    if (!rc && poll_word(flag, word(p, 1), 0, until))
        atomic_store(met, 1);
    return rc;
}

static CUresult pingpong(struct stream *s, void **p)
{
    uint64_t until = nanoseconds() + wide(p, 5);
    uint32_t k = word(p, 2), end = word(p, 3), is_first = word(p, 4), n = 0;
    _Atomic uint32_t *mine, *theirs, *done;
    CUresult rc = at(s, wide(p, 0), 4, 4, &mine);

    if (!rc)
        rc = at(s, wide(p, 1), 4, 4, &theirs);
    if (!rc)
        rc = at(s, wide(p, 6), 4, 4, &done);
    if (rc)
        return rc;
    for (; k < end; k++, n++) {
        if (is_first)
            atomic_store(theirs, k);
        if (!poll_word(mine, k, 1, until))
            break;
        if (!is_first)
            atomic_store(theirs, k);
    }
    atomic_store(done, n);
    return CUDA_SUCCESS;
}

static CUresult copy16(struct stream *s, void **p)
{
    size_t len = 16 * wide(p, 2);
    void *to, *from;
    CUresult rc = len ? at(s, wide(p, 0), len, 16, &to) : CUDA_SUCCESS;

    if (!rc && len)
        rc = at(s, wide(p, 1), len, 16, &from);
    if (!rc && len)
        memmove(to, from, len);
    return rc;
}

static CUresult pass8(struct stream *s, void **p)
{
    _Atomic uint32_t *flag;
    void *to, *from;
    CUresult rc = at(s, wide(p, 0), 8, 8, &to);

    if (!rc)
        rc = at(s, wide(p, 1), 8, 8, &from);
    if (!rc)
        rc = at(s, wide(p, 2), 4, 4, &flag);
    if (rc)
        return rc;
    memcpy(to, from, 8);
    atomic_store(flag, word(p, 3));
    return CUDA_SUCCESS;
}

/* The times in which it did not run. */
static CUresult gaps(struct stream *s, void **p)
{
    uint64_t began = nanoseconds(), last = began, n = 0, now;
    uint32_t most = word(p, 1);
    uint64_t *out;
    CUresult rc = at(s, wide(p, 0), 16 + 16 * (size_t)most, 8, &out);

    if (rc)
        return rc;
    out[1] = began;
    do {
        now = nanoseconds();
        if (now - last >= wide(p, 2) && n < most) {
            out[2 + 2 * n] = last;
            out[3 + 2 * n++] = now - last;
        }
        last = now;
    } while (now - began < wide(p, 3) && !fake_error());
    out[0] = n;
    return CUDA_SUCCESS;
}

/* tests/gpu/kernels_driver.c: 77 to an address */
static CUresult nothing(struct stream *s, void **p)
{
    uint64_t *to;
    CUresult rc = at(s, wide(p, 0), 8, 8, &to);

    if (!rc)
        *to = 77;
    return rc;
}

const struct kernel *ptx_kernel(const char *name)
{
    static const struct kernel kernels[] = {
        {"add_one", "a", 1024, add_one},
        {"store", "au", 1024, store_checked},
        {"stop", "", 1024, stop},
        {"hold", "w", 1024, hold},
        {"await", "auwa", 1024, await},
        {"pingpong", "aauuuwa", 1024, pingpong},
        {"copy16", "aaw", 1024, copy16},
        {"pass8", "aaau", 1024, pass8},
        {"gaps", "auww", 1024, gaps},
        {"nothing", "a", 1024, nothing},
    };

    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    return NULL;
}
