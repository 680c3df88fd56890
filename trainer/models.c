/* SPDX-License-Identifier: BSD-3-Clause */
/* models.c - the networks, one line for each layer. */
#include "trainer/models.h"

#include <string.h>

#define N_LAYERS(specs) ((int)(sizeof(specs) / sizeof((specs)[0])))

static const struct layer_spec cnn[] = {
    {.kind = LAYER_CONV, .units = 32, .kernel = 3, .relu = 1},
    {.kind = LAYER_CONV, .units = 64, .kernel = 3},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1}, /* = relu, then pool */
    {.kind = LAYER_DROPOUT, .rate = 0.25f},
    {.kind = LAYER_DENSE, .units = 128, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.5f},
    {.kind = LAYER_DENSE, .units = UNITS_CLASSES},
};

const struct model_desc model_cnn = {
    .name = "cnn",
    .what = "two convolutions and two dense layers, as Keras's for MNIST",
    .specs = cnn,
    .n_specs = N_LAYERS(cnn),
    .in = {1, 28, 28, 1},
};

/* Horovod's examples/pytorch_mnist.py: 21,840 parameters.  There relu follows
 * the pool, which gives the same result. */
static const struct layer_spec net[] = {
    {.kind = LAYER_CONV, .units = 10, .kernel = 5},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
    {.kind = LAYER_CONV, .units = 20, .kernel = 5},
    {.kind = LAYER_DROPOUT, .rate = 0.5f, .of_maps = 1},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
    {.kind = LAYER_DENSE, .units = 50, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.5f},
    {.kind = LAYER_DENSE, .units = UNITS_CLASSES},
};

static const struct model_desc model_net = {
    .name = "net",
    .what = "Horovod's pytorch_mnist",
    .specs = net,
    .n_specs = N_LAYERS(net),
    .in = {1, 28, 28, 1},
};

/* Krizhevsky's network for images of 32 x 32. */
static const struct layer_spec alexnet[] = {
    {.kind = LAYER_CONV, .units = 64, .kernel = 3, .stride = 2, .pad = 1},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
    {.kind = LAYER_CONV, .units = 192, .kernel = 3, .pad = 1},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
    {.kind = LAYER_CONV, .units = 384, .kernel = 3, .pad = 1, .relu = 1},
    {.kind = LAYER_CONV, .units = 256, .kernel = 3, .pad = 1, .relu = 1},
    {.kind = LAYER_CONV, .units = 256, .kernel = 3, .pad = 1},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.5f},
    {.kind = LAYER_DENSE, .units = 4096, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.5f},
    {.kind = LAYER_DENSE, .units = 4096, .relu = 1},
    {.kind = LAYER_DENSE, .units = UNITS_CLASSES},
};

static const struct model_desc model_alexnet = {
    .name = "alexnet",
    .what = "AlexNet for 32 x 32 images",
    .specs = alexnet,
    .n_specs = N_LAYERS(alexnet),
    .in = {3, 32, 32, 3},
};

/* ---- residual networks: He et al., CVPR 2016, as torchvision builds them ---- */

#define CONV(n, k, s)                                                          \
    {                                                                          \
        .kind = LAYER_CONV, .units = (n), .kernel = (k), .stride = (s),        \
        .pad = (k) / 2, .no_bias = 1                                           \
    }
#define SHORTCUT(n, s)                                                         \
    CONV(n, 1, s), { .kind = LAYER_NORM }
#define NORM_RELU                                                              \
    {                                                                          \
        .kind = LAYER_NORM, .relu = 1                                          \
    }
#define NORM_PLUS(k)                                                           \
    {                                                                          \
        .kind = LAYER_NORM, .plus = (k), .relu = 1                             \
    }

/* Two convolutions, whose result is added to their input, or to a 1 x 1
 * convolution of it, which comes first. */
#define BASIC_REST(n) NORM_RELU, CONV(n, 3, 1), NORM_PLUS(3)
#define BASIC(n) CONV(n, 3, 1), BASIC_REST(n)
#define BASIC_HALF(n) SHORTCUT(n, 2), CONV_FROM(n, 3, 2), BASIC_REST(n)
/* The first of the two convolutions after a shortcut reads the input of the
 * shortcut. */
#define CONV_FROM(n, k, s)                                                     \
    {                                                                          \
        .kind = LAYER_CONV, .units = (n), .kernel = (k), .stride = (s),        \
        .pad = (k) / 2, .no_bias = 1, .from = 2                                \
    }

#define RESNET18_STAGES                                                        \
    BASIC(64), BASIC(64), BASIC_HALF(128), BASIC(128), BASIC_HALF(256),        \
        BASIC(256), BASIC_HALF(512), BASIC(512)

/* 1 x 1, 3 x 3 and 1 x 1 convolutions; the stride is the middle one's. */
#define DEEP_REST(n, s)                                                        \
    NORM_RELU, CONV(n, 3, s), NORM_RELU, CONV(4 * (n), 1, 1), NORM_PLUS(5)
#define DEEP(n) CONV(n, 1, 1), DEEP_REST(n, 1)
#define DEEP_FIRST(n, s)                                                       \
    SHORTCUT(4 * (n), s), CONV_FROM(n, 1, 1), DEEP_REST(n, s)

#define STEM                                                                   \
    CONV(64, 7, 2), NORM_RELU,                                                 \
    {                                                                          \
        .kind = LAYER_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1             \
    }
#define HEAD                                                                   \
    {.kind = LAYER_MEAN_POOL}, { .kind = LAYER_DENSE, .units = UNITS_CLASSES }

static const struct layer_spec resnet18[] = {STEM, RESNET18_STAGES, HEAD};

static const struct layer_spec resnet18_cifar[] = {CONV(64, 3, 1), NORM_RELU,
                                                   RESNET18_STAGES, HEAD};

static const struct layer_spec resnet50[] = {
    STEM,      DEEP_FIRST(64, 1),  DEEP(64),
    DEEP(64),  DEEP_FIRST(128, 2), DEEP(128),
    DEEP(128), DEEP(128),          DEEP_FIRST(256, 2),
    DEEP(256), DEEP(256),          DEEP(256),
    DEEP(256), DEEP(256),          DEEP_FIRST(512, 2),
    DEEP(512), DEEP(512),          HEAD,
};

static const struct model_desc model_resnet18 = {
    .name = "resnet18",
    .what = "torchvision's ResNet-18",
    .specs = resnet18,
    .n_specs = N_LAYERS(resnet18),
    .in = {3, 32, 32, 3},
};

static const struct model_desc model_resnet18_cifar = {
    .name = "resnet18-cifar",
    .what = "ResNet-18 with a 3 x 3 stem and no pool, for 32 x 32 images",
    .specs = resnet18_cifar,
    .n_specs = N_LAYERS(resnet18_cifar),
    .in = {3, 32, 32, 3},
};

static const struct model_desc model_resnet50 = {
    .name = "resnet50",
    .what = "torchvision's ResNet-50",
    .specs = resnet50,
    .n_specs = N_LAYERS(resnet50),
    .in = {3, 224, 224, 3},
};

static const struct model_desc *const models[] = {
    &model_cnn,
    &model_net,
    &model_alexnet,
    &model_resnet18,
    &model_resnet18_cifar,
    &model_resnet50,
};

int model_needs_batch(const struct model_desc *desc)
{
    for (int i = 0; i < desc->n_specs; i++)
        if (desc->specs[i].kind == LAYER_NORM)
            return 1;
    return 0;
}

const struct model_desc *model_at(int i)
{
    return i < N_LAYERS(models) ? models[i] : NULL;
}

const struct model_desc *model_find(const char *name)
{
    for (int i = 0; i < N_LAYERS(models); i++)
        if (!strcmp(models[i]->name, name))
            return models[i];
    return NULL;
}
