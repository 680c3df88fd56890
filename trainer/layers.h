/* SPDX-License-Identifier: BSD-3-Clause */
/* layers.h - what a layer is; each kind is one file, layers_<kind>.c.
 *
 * A layer computes `chunk` images at a time.  The images of a feature map follow
 * each other in memory.  Within an image the channels are cut into blocks:
 * [channels / block][height][width][block].  With block == channels this is plain
 * height, width, channel order.  Only convolutions and the layers right after
 * them know other blocks.
 */
#ifndef COLL_TRAINER_LAYERS_H
#define COLL_TRAINER_LAYERS_H

#include <stddef.h>
#include <stdint.h>

struct shape {
    int channels, height, width;
    int block; /* channels that lie side by side */
};

static inline size_t shape_len(const struct shape *s)
{
    return (size_t)s->channels * (size_t)s->height * (size_t)s->width;
}

/* The kinds of layers; a device has its own layer_ops for each. */
enum layer_kind {
    LAYER_CONV,
    LAYER_MAX_POOL,
    LAYER_MEAN_POOL, /* the mean of each whole map */
    LAYER_NORM,      /* batch normalization */
    LAYER_DENSE,
    LAYER_DROPOUT,
    N_LAYER_KINDS
};

#define UNITS_CLASSES (-1) /* as many units as the data has classes */

/* One line of a model's description. */
struct layer_spec {
    enum layer_kind kind;
    int units; /* output channels or features; 0: as many as come in */
    /* a window's size, stride and padding; stride 0 means 1 for a convolution, and
     * `kernel` for a pool */
    int kernel, stride, pad;
    int relu;                /* 1: negative results become 0 */
    int no_bias;             /* of a convolution */
    int of_maps; /* of dropout: whole maps are dropped, not single values */
    float rate; /* dropout: the part that is dropped */
    /* the input is the output of an earlier layer: 0: of the layer before; n: of the
     * layer n before that */
    int from;
    /* if not 0: the output of an earlier layer is added to the result, counted as
     * `from` */
    int plus;
};

struct layer_ops;

struct layer {
    struct layer_spec spec;
    const struct layer_ops *ops;
    int index; /* within the model */
    int chunk; /* images in one pass */
    struct shape in, out;
    int fan_in, fan_out; /* for the initialisation; 0: weights begin as 1 */
    size_t n_weights, n_biases;
    size_t n_running;          /* statistics of past batches */
    /* of the device: */
    float *running;            /* a view of the model's; or NULL */
    float *weights, *biases;   /* views of the model's parameters */
    float *dweights, *dbiases; /* views of its gradients; NULL: forward only */
    int is_stale; /* the weights have changed since the layer last looked */
    void *state;  /* the layer kind's own */
};

static inline int layer_stride(const struct layer *l)
{
    if (l->spec.stride)
        return l->spec.stride;
    return l->spec.kind == LAYER_MAX_POOL ? l->spec.kernel : 1;
}

/* Return how many windows lie along `side` values; below 1: none fits. */
static inline int layer_windows(const struct layer *l, int side)
{
    int room = side + 2 * l->spec.pad - l->spec.kernel;

    return room < 0 ? 0 : room / layer_stride(l) + 1;
}

/* What one pass over a chunk is for. */
struct pass {
    int is_training; /* 0: a test; batches are normalized by past statistics */
    int keeps_all;   /* 1: nothing is dropped, although it is training */
    uint64_t key; /* of this step's random numbers */
    size_t first; /* the chunk's first image, counted in the global batch */
    int n;        /* only the first images count, so many; 0: the whole chunk */
    /* gradients are written instead of added: model_clear_gradients() was called
     * before */
    int is_first;
    int (*needs)(void *arg, int layer); /* unless NULL: called before a layer is
                                         * run forward; 0, or -1 to stop */
    void *arg;
};

/* A layer's activations and, in the backward pass, their gradients, whole
 * chunks: values of the device (device.h). */
struct layer_io {
    const float *in, *plus; /* what is added; NULL if the spec has none */
    float *out;
    float *dout; /* the layer's backward pass may overwrite it */
    float *din, *dplus; /* NULL if it is not needed */
};

/* A norm layer adds this to variances, and the running statistics move by this part of
 * the way. */
#define NORM_EPSILON 1e-5
#define NORM_MOMENTUM 0.1f

/* What a kind of layer can do; no slot is empty.  Functions return 0, or -1
 * with train_error() set. */
struct layer_ops {
    const char *name;
    int may_overwrite; /* backward may find din == in */
    int reads_out;     /* backward reads out, also where it has no relu */
    int writes_over; /* the first pass finds anything in dweights, not zeros */
    int (*shape)(struct layer *layer); /* set the other fields from in and
                                        * spec */
    int (*init)(struct layer *layer);
    void (*fini)(struct layer *layer);
    /* NaN stays NaN, so that the loss shows it. */
    int (*forward)(struct layer *layer, const struct layer_io *io,
                   const struct pass *pass);
    /* Adds to dweights and dbiases (but see is_first), writes din and dplus. */
    int (*backward)(struct layer *layer, const struct layer_io *io,
                    const struct pass *pass);
};

/* The kinds that use oneDNN, and those of this program; see device_cpu.c. */
extern const struct layer_ops layer_conv_image; /* from one channel */
extern const struct layer_ops layer_conv_point; /* to one pixel, of all */
extern const struct layer_ops layer_conv;
extern const struct layer_ops layer_pool;     /* 2 x 2, step 2, of blocks */
extern const struct layer_ops layer_pool_any; /* of plain order */
extern const struct layer_ops layer_mean;
extern const struct layer_ops layer_norm;
extern const struct layer_ops layer_dense;
extern const struct layer_ops layer_dropout;

/* Replace negative values by 0; NaN stays NaN. */
void layer__relu(float *values, size_t n);

/* Clear the gradients of the values that relu has set to 0. */
void layer__relu_back(const float *values, float *gradients, size_t n);

int layer__no_init(struct layer *layer);
void layer__no_fini(struct layer *layer);

struct loss_job;
struct model_score;

/* Softmax and cross-entropy of a job's rows.
 *
 * Result:    added to score->loss: the sum of the rows' losses; to score->n_right: the
 *            rows whose largest score is the label's; dscores = scale * d loss / d
 *            score.  With `smoothing` e a row's loss is (1 - e) of that of its
 *            label and e of the mean of all classes' losses, as with
 *            label_smoothing in PyTorch's CrossEntropyLoss.
 *            This is the `loss` function of the CPU's device table.
 * Cost:      no allocation.
 * Source:    Szegedy et al., CVPR 2016 (label smoothing).
 */
void softmax_loss(const struct loss_job *job, struct model_score *score);

#endif
