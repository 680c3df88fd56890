/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_kernel.h - the trainer's kernels for CUDA, compiled for the host: run by grids
 * of several sizes, first or last thread first, on buffers that end where they say. */
#ifndef COLL_TESTS_TRAINER_KERNEL_H
#define COLL_TESTS_TRAINER_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* The type of an entry's activations; F16 is of the wire only. */
enum kernel_type { F32, BF16, F16, F64 };

/* A parameter.  Values are floats here, and of the entry's type there. */
struct kernel_arg {
    char letter; /* as in trainer/cuda/kernels.h */
    int is_values;
    void *at;
    size_t len; /* bytes, here */
    uint64_t value;
};

#define VALUES(p, n)                                                           \
    {                                                                          \
        's', 1, (void *)(p), (n) * sizeof(float), 0                            \
    }
#define ARRAY(p, n)                                                            \
    {                                                                          \
        's', 0, (void *)(p), (n) * sizeof(*(p)), 0                             \
    }
#define ABSENT                                                                 \
    {                                                                          \
        's', 0, NULL, 0, 0                                                     \
    }
#define WORD(x)                                                                \
    {                                                                          \
        'u', 0, NULL, 0, (uint32_t)(x)                                         \
    }
#define REAL(x)                                                                \
    {                                                                          \
        'u', 0, NULL, 0, kernel_real(x)                                        \
    }
#define WIDE(x)                                                                \
    {                                                                          \
        'w', 0, NULL, 0, (x)                                                   \
    }
#define DOUBLE(x)                                                              \
    {                                                                          \
        'w', 0, NULL, 0, kernel_double(x)                                      \
    }

/* Run train_<name>_<type>, its parameters behind the type. */
#define KERNEL(name, type, ...)                                                \
    kernel_run(name, type, (const struct kernel_arg[]){__VA_ARGS__},           \
               sizeof((const struct kernel_arg[]){__VA_ARGS__}) /              \
                   sizeof(struct kernel_arg))

/* Run an entry by each grid on copies of the buffers, also on such that are not aligned to
 * more than elements, and write the result over the buffers.  Fails if two results differ
 * in a bit.  Spans of one address are one buffer. */
void kernel_run(const char *name, enum kernel_type type,
                const struct kernel_arg *args, size_t n);

uint64_t kernel_real(float x);
uint64_t kernel_double(double x);

/* Return n values from -1 to 1 that the type can hold, the caller's to free. */
float *kernel_values(size_t n, uint64_t seed, enum kernel_type type);

/* Return zeros, the caller's to free. */
float *kernel_zeros(size_t n);

/* Round values to the type. */
void kernel_round(float *values, size_t n, enum kernel_type type);

/* Fail unless they are equal, as a number or as NaN; or within the type's rounding. */
void kernel_same(const float *is, const float *want, size_t n,
                 const char *what);
void kernel_near(const float *is, const float *want, size_t n,
                 enum kernel_type type, const char *what);

#endif
