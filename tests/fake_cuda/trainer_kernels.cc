/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_kernels.cc - the trainer's kernels, compiled for the host. */
#include "tests/fake_cuda/cuda_shim.h"
#include "tests/fake_cuda/kernel_entry.h"
#include "trainer/cuda/kernels.cu"

#include <cstring>
#include <utility>

namespace
{
/* A parameter: its letter, and the bytes of a span's element. */
template <typename T> struct kind_of {
    static constexpr char letter = sizeof(T) == 4 ? 'u' : 'w';
    static constexpr unsigned char item = 0;
};
template <typename T> struct kind_of<train::span<T>> {
    static_assert(sizeof(train::span<T>) == sizeof(train_span));
    static constexpr char letter = 's';
    static constexpr unsigned char item = sizeof(T);
};

/* Those of a kernel, whose values are in an array as cuLaunchKernel() takes it. */
template <typename... T> struct kinds_of {
    static constexpr char letters[] = {kind_of<T>::letter..., 0};
    static constexpr unsigned char items[] = {kind_of<T>::item...};

    template <size_t... i>
    static void call(void (*run)(T...), void **p, std::index_sequence<i...>)
    {
        run(*(T *)p[i]...);
    }
};
template <typename... T> kinds_of<T...> kinds(void (*)(T...));

constexpr bool are_equal(const char *a, const char *b)
{
    return *a == *b && (!*a || are_equal(a + 1, b + 1));
}

#define KINDS(name, type) decltype(kinds(train::train_##name##_##type))

#define CHECK(name, type, letters_, parameters, arguments)                     \
    static_assert(are_equal(KINDS(name, type)::letters, letters_));
TRAIN_CUDA_KERNELS(CHECK)

#define RUN(name, type, letters, parameters, arguments)                        \
    {"train_" #name "_" #type, letters,                                        \
     [](void **p) {                                                            \
         KINDS(name,                                                           \
               type)::call(train::train_##name##_##type, p,                    \
                           std::make_index_sequence<sizeof(letters) - 1>());   \
     },                                                                        \
     KINDS(name, type)::items},

const fake_entry entries[] = {TRAIN_CUDA_KERNELS(RUN)};
} // namespace

const fake_entry *fake_trainer_entry(const char *name)
{
    for (auto &e : entries)
        if (!std::strcmp(e.name, name))
            return &e;
    return nullptr;
}
