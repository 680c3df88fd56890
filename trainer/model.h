/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - layers over one flat array of parameters.
 *
 * A batch goes through in chunks, so that activations stay small: fill
 * model_input(), then forward, loss and backward add the chunk's gradients.
 * All buffers are made once; a step allocates nothing.
 */
#ifndef COLL_TRAINER_MODEL_H
#define COLL_TRAINER_MODEL_H

#include "trainer/device.h"
#include "trainer/models.h"

struct model;

enum model_init_kind { INIT_GLOROT, INIT_TORCH };

struct model_config {
    const struct model_desc *desc;
    const struct device *device; /* NULL: the processors */
    int channels, height, width; /* of an image */
    int classes;                 /* 0: 10 */
    int chunk;                   /* images in one pass */
    double smoothing;            /* of the labels in training */
};

/* Build the layers.
 *
 * Result:    0, or -1 with train_error() set.
 * Ownership: *model is the caller's, to end by model_destroy(); the config's
 *            desc and device stay borrowed.
 */
int model_create(struct model **model, const struct model_config *config);
void model_destroy(struct model *model);

/* Build the forward pass alone, over the parameters of `of`, for `chunk`
 * images at a time; it must end before `of` does. */
int model_create_view(struct model **model, struct model *of, int chunk);

/* Return the device that has the model's memory. */
const struct device *model_device(const struct model *model);

/* Return the parameters, and their gradients in the same order.
 *
 * Shapes:    model_n_params() floats of the device, layer by layer, weights before biases.
 * Ownership: the model's.  After writing parameters: model_changed(), also on
 *            each view.
 */
float *model_params(struct model *model);
float *model_gradients(struct model *model);
size_t model_n_params(const struct model *model);
void model_changed(struct model *model);

/* Prepare the gradients for the first backward pass of a step (pass->is_first), to
 * which later passes add.
 *
 * Cost:      a layer whose first pass overwrites its gradients does not need them
 *            cleared, so large gradients are not written twice.
 */
void model_clear_gradients(struct model *model);

/* Return the statistics of past batches: batch normalization's means and
 * variances, of the device.  A view has those of its model. */
float *model_running(struct model *model);
size_t model_n_running(const struct model *model);

/* model_n_layers: return the number of layers.  model_layer_params: return how many
 * parameters layer i has. */
int model_n_layers(const struct model *model);
size_t model_layer_params(const struct model *model, int i);

/* Return layer i, for tests and reports. */
const struct layer *model_layer(const struct model *model, int i);

/* Draw all parameters anew; the same seed gives the same bits. */
void model_init_params(struct model *model, enum model_init_kind kind,
                       uint64_t seed);

/* Return where the images of a chunk go, [chunk][height][width][channels] values of the
 * device. */
float *model_input(struct model *model);

/* Read the images from `input` from now on.  Returns where they were read from
 * before.
 *
 * Shapes:    input: as large as model_input(), of the model's device.
 * Ownership: the model owns input, and the caller owns what is returned.
 */
float *model_change_input(struct model *model, float *input);

/* Copy the values [at, at + n) of the input of layer i in the last forward pass, or the
 * output of layer i - 1, to the host.  The backward pass overwrites it.
 *
 * Shapes:    to[n], out of [chunk][values of an image].
 * Result:    0, or -1 with train_error() set.
 */
int model_read(const struct model *model, int i, size_t at, size_t n,
               float *to);
int model_chunk(const struct model *model);
int model_n_classes(const struct model *model);

/* Run the layers over the input.  Result: 0, or -1 with train_error() set. */
int model_forward(struct model *model, const struct pass *pass);

/* Compute the loss of the first n images of the chunk, whose labels are of the device.
 *
 * Shapes:    score: of the device.
 * Result:    the loss is added to *score; and, unless the model is a view, there are the
 *            gradients of the scores: each image's times `scale`, and zero for the
 *            images after n.  Labels of a view are not smoothed.
 */
void model_loss(struct model *model, const unsigned char *labels, int n,
                float scale, struct model_score *score);

/* Add the chunk's gradients; with pass->is_first they are the only ones.
 *
 * Shapes:    unless `done` is NULL it is called after each layer, the last one
 *            first: nothing of this pass will touch that layer's gradients any
 *            more, nor those of the layers behind it.
 * Result:    0, or -1 with train_error() set, also when done() returned that.
 */
int model_backward(struct model *model, const struct pass *pass,
                   int (*done)(void *arg, int layer), void *arg);

#endif
