/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - what computes: a table of functions for each kind of processor.
 *
 * Model, trainer and optimizer touch the numbers of a chunk only through this
 * table, so that a new device is one file and one line of the list in device.c.
 * The host can read and write the memory of a device too, between two calls:
 * for checkpoints, check sums and collectives.
 */
#ifndef COLL_TRAINER_DEVICE_H
#define COLL_TRAINER_DEVICE_H

#include "trainer/data.h"
#include "trainer/layers.h"
#include "trainer/optim.h"

/* How good the scores of a chunk are. */
struct model_score {
    double loss; /* summed over the images */
    int n_right;
};

/* The rows whose loss is computed: n rows of `classes` scores. */
struct loss_job {
    const float *scores;
    const unsigned char *labels; /* [n], below classes */
    int n, classes;
    float scale;
    double smoothing; /* of the labels, 0 none */
    float *dscores; /* [n][classes] = scale * d loss / d score, or NULL */
};

/* No slot is empty.  Functions of type int return 0, or -1 with train_error()
 * set.  One thread calls them; another one may call gather() meanwhile, for
 * other buffers. */
struct device {
    const char *name; /* as --device has it */
    int (*init)(int threads);
    void (*fini)(void);
    int (*block)(void); /* the channel block of feature maps; 0: plain order */
    /* Return the code for a layer whose input has this shape. */
    const struct layer_ops *(*layer)(const struct layer_spec *spec,
                                     const struct shape *in);
    float *(*alloc)(size_t n); /* zeros; NULL when there is no memory */
    void (*release)(float *values);
    void (*zero)(float *values, size_t n);
    void (*add)(float *to, const float *from, size_t n); /* to += from */
    void (*gather)(const struct images_pick *pick, float *out,
                   unsigned char *labels);
    void (*loss)(const struct loss_job *job, struct model_score *score);
    /* Update a part of the parameters; optim->step already counts this step. */
    void (*step)(struct optim *optim, const struct optim_part *part);
};

extern const struct device device_cpu;

/* Return the device of this name, or NULL. */
const struct device *device_find(const char *name);

#endif
