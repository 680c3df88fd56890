/* SPDX-License-Identifier: BSD-3-Clause */
/* step.c - the numbers of a step, in the GPU's memory, where kernels read them: so the
 * parameters of kernels are the same in each step. */
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"

static struct {
    struct train_step *numbers; /* of the GPU */
    size_t first;               /* as there */
} step;

int compute_step_init(void)
{
    step.numbers = gpu_alloc(sizeof(*step.numbers));
    return step.numbers ? 0 : gpu_no_memory(sizeof(*step.numbers));
}

void compute_step_fini(void)
{
    gpu_release(step.numbers);
    step.numbers = NULL;
}

void compute_begin(const struct device_step *begun)
{
    const struct optim *o = begun->optim;
    struct train_step numbers = {
        .augment = begun->pick.key,
        .dropout = begun->dropout,
        .first = begun->pick.first,
        .rate = (float)o->lr,
    };

    if (o->kind == OPTIM_ADAM) {
        struct adam_rates rates = optim_adam_rates(o);

        numbers.rate = rates.rate;
        numbers.epsilon = rates.epsilon;
    }
    gpu_write(step.numbers, &numbers, sizeof(numbers));
    step.first = begun->pick.first;
    compute_bring(&begun->pick);
}

struct train_span compute_step_numbers(void)
{
    return span(step.numbers, sizeof(*step.numbers));
}

uint64_t compute_step_place(size_t first) { return first - step.first; }
