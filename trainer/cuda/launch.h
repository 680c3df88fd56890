/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.h - start the kernels of kernels.h in the GPU's compute stream.
 *
 *     struct train_span to = span(a, len), from = span(b, len);
 *
 *     LAUNCH(add_f32, len / 4, ARG(to), ARG(from));
 */
#ifndef COLL_TRAINER_CUDA_LAUNCH_H
#define COLL_TRAINER_CUDA_LAUNCH_H

#include "trainer/cuda/gpu.h"
#include "trainer/cuda/kernels.h"

#include <stddef.h>
#include <stdint.h>

enum launch_kernel {
#define X(name, type, letters, parameters, arguments) KERNEL_##name##_##type,
    TRAIN_CUDA_KERNELS(X)
#undef X
        N_KERNELS
};

/* A parameter of a kernel, and its letter in kernels.h. */
struct launch_arg {
    char letter;
    void *at;
};

#define ARG(variable)                                                          \
    (struct launch_arg)                                                        \
    {                                                                          \
        _Generic((variable), struct train_span                                 \
                 : 's', int                                                    \
                 : 'u', uint32_t                                               \
                 : 'u', float                                                  \
                 : 'u', uint64_t                                               \
                 : 'w', double                                                 \
                 : 'w'),                                                       \
            (void *)&(variable)                                                \
    }

/* n: elements that the threads share; parameters are variables, in ARG().
 *
 * Result:    0, or -1 with train_error() set.
 */
#define LAUNCH(kernel, n, ...)                                                 \
    launch(KERNEL_##kernel, (n), (struct launch_arg[]){__VA_ARGS__},           \
           sizeof((struct launch_arg[]){__VA_ARGS__}) /                        \
               sizeof(struct launch_arg))

/* The same for a kernel that has an entry for each type of values: that of gpu.h. */
#define LAUNCH_VALUES(kernel, n, ...)                                          \
    launch(gpu_has_bf16() ? KERNEL_##kernel##_bf16 : KERNEL_##kernel##_f32,    \
           (n), (struct launch_arg[]){__VA_ARGS__},                            \
           sizeof((struct launch_arg[]){__VA_ARGS__}) /                        \
               sizeof(struct launch_arg))

int launch(enum launch_kernel kernel, size_t n, const struct launch_arg *args,
           size_t n_args);

/* Load the kernels, with the GPU's context current.
 *
 * Result:    0, or -1 with train_error() set.
 * Ownership: end it by launch_fini(), also after an error.
 */
int launch_init(void);
void launch_fini(void);

/* Return 1 if the program was built with kernels. */
int launch_has_kernels(void);

/* Return how many blocks the GPU can be given work with. */
unsigned launch_most_blocks(void);

static inline struct train_span span(const void *at, size_t len)
{
    return (struct train_span){(uint64_t)(uintptr_t)at, at ? len : 0};
}

/* A span of n floats; NULL: absent. */
static inline struct train_span floats(const void *at, size_t n)
{
    return span(at, n * sizeof(float));
}

/* A span of n values. */
static inline struct train_span values(const void *at, size_t n)
{
    return span(at, n * gpu_value_size());
}

#endif
