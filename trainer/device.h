/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - what computes: a table of functions for each kind of processor.
 *
 * The memory of a device is touched only through this table, so that a new device is one
 * file and one line of the list in device.c.  The host can compute with pointers into that
 * memory, and gives them to collectives, but it never follows one.  Such pointers have the
 * type of what they point to, and their comments say "of the device".
 *
 * A device does its work in the order of the calls.  A function that returns nothing may
 * return before its work is done.  Its error is kept, and returned by each later function
 * that returns an int.
 *
 * Parameters, their gradients, the optimizer's state and running statistics are floats in
 * the same order on every device, so that ranks exchange them and checkpoints hold them as
 * they are.  Activations and their gradients, the "values", are in a format of the device.
 */
#ifndef COLL_TRAINER_DEVICE_H
#define COLL_TRAINER_DEVICE_H

#include "trainer/data.h"
#include "trainer/layers.h"
#include "trainer/optim.h"
#include "trainer/wire.h"

/* How good scores are, summed over images. */
struct model_score {
    double loss, n_right;
};

/* What a step works with that is new in each step. */
struct device_step {
    struct images_pick pick; /* all images of this rank */
    uint64_t dropout;        /* the key of its passes */
    const struct optim *optim;
};

/* What a step leaves for the host, which reads it when the step is over. */
struct step_record {
    struct model_score score;
    double squares; /* of the averaged gradients */
    float canary;   /* a gradient that is finite if all ranks' losses are */
};

/* The rows whose loss is computed: n rows of `classes` scores.  All pointers are of the
 * device; scores and dscores are values. */
struct loss_job {
    const float *scores;
    const unsigned char *labels; /* [n], below classes */
    int n, classes;
    float scale;
    double smoothing; /* of the labels, 0 none */
    float *dscores; /* [n][classes] = scale * d loss / d score, or NULL */
};

/* What a device computes with.  Sums, parameters and the optimizer are f32. */
enum precision {
    PRECISION_F32,
    PRECISION_TF32, /* factors of products have 10 bits of mantissa */
    PRECISION_BF16  /* values, and a copy of the weights, are bfloat16 */
};

/* Return its word in --precision. */
const char *precision_name(enum precision precision);

/* What a device has to know when it begins. */
struct device_config {
    enum precision precision;
    int number; /* of the GPU among those that are visible; -1: local_rank's */
    int local_rank;       /* of this process, among those of its host */
    int threads;          /* of the CPU */
    int is_deterministic; /* the same bits in each run */
    int has_overlap; /* the exchange of gradients runs beside the computation */
};

/* Floats that are copied from the device or to it at a time, where a buffer for all of
 * them is not worth its memory. */
#define DEVICE_PIECE 8192

/* Values: activations and their gradients, of the device.  Their pointers are `float *`
 * in the layers, whatever the format is. */
struct device_values {
    int (*block)(void); /* the channel block of feature maps; 0: plain order */
    size_t (*size)(void); /* bytes of one value */
    /* Copy n values to the host, as floats. */
    int (*read)(float *to, const void *from, size_t n);
    void (*add)(void *to, const void *from, size_t n); /* to += from */
};

/* What a device is.  libraries and probe work before init(). */
struct device_about {
    /* libraries: say what the device needs at run time: 0 and its libraries' versions, or
     * -1 and why one of them cannot be used.  probe: 0 if the device can compute here, or
     * -1 and why not. */
    int (*libraries)(char *text, size_t len);
    int (*probe)(char *why, size_t len);
    /* Write "cuda:0 NVIDIA H200, 141 GB", or "" for the processors. */
    void (*say)(char *text, size_t len);
};

/* Work that is put once and done any number of times: a graph. */
struct device_graphs {
    int (*begin)(
        void); /* record what is put from now on, instead of doing it */
    /* Return the graph of what was put, the caller's to drop; or NULL with train_error()
     * set.  Then the device is as before begin(), also if what was put has failed. */
    void *(*end)(void);
    int (*launch)(void *graph); /* do its work, in the order of the calls */
    void (*drop)(void *graph);  /* NULL is allowed */
};

#define DEVICE_MARKS 64

/* Time stamps in the device's work: it notes the time when it comes to one. */
struct device_stamps {
    /* Put a stamp behind all that was put before, or into the stream of exchange().  Return
     * its number, or -1.  The device comes to one that is recorded in a graph at each
     * launch. */
    int (*put)(int in_exchange);
    /* read: return when the device has come to all stamps: 0, or -1.  Later stamps have the
     * numbers of those that were read, but not of those in graphs.  time: return when the
     * device has come to a stamp, by clock.h, from read() until the next put(). */
    int (*read)(void);
    double (*time)(int stamp);
};

/* The order of the device's work, the host's and that of collectives. */
struct device_order {
    /* well: return -1 if a function has failed so far; it does not wait.  wait: return when
     * all that was put before is done. */
    int (*well)(void);
    int (*wait)(void);
    /* exchange: return the stream for a collective that is to see all that was put before;
     * NULL: the host's memory, no stream.  exchanged: let what is put from now on see the
     * results of all collectives in that stream. */
    void *(*exchange)(void);
    void (*exchanged)(void);
    int has_stream; /* exchange() returns one */
    /* mark: give what is in that stream by now a number below DEVICE_MARKS.  see: let what is
     * put from now on see the results of all collectives up to that mark. */
    void (*mark)(int number);
    void (*see)(int number);
    const struct device_graphs *graphs; /* NULL: it records nothing */
    const struct device_stamps *stamps; /* NULL: it works while it is called */
};

/* Sets of images, and batches of them. */
struct device_images {
    /* Bring a set of images into the device's memory, for gather(), until let_go(), which
     * is also called for a set that is not held.  Drawn images are drawn by gather(). */
    int (*hold)(struct images *images);
    void (*let_go)(struct images *images);
    /* As images_gather(): `pick` is the host's, which may change it and its index after
     * the call, and `out` are values. */
    void (*gather)(const struct images_pick *pick, float *out,
                   unsigned char *labels);
};

/* No slot is empty.  Functions of type int return 0, or -1 with train_error() set.  One
 * thread calls them; another one may call gather() meanwhile, for other buffers, unless
 * the device is asynchronous.  Memory is of the device where nothing else is said. */
struct device {
    const char *name; /* as --device has it */
    /* 1: functions return before their work is done, so no thread has to gather images
     * ahead */
    int is_async;
    int most_images; /* of a pass; 0: any number */
    struct device_about about;
    int (*init)(const struct device_config *config);
    void (*fini)(void); /* also if init() has failed, or was not called */
    /* Return the code for a layer whose input has this shape. */
    const struct layer_ops *(*layer)(const struct layer_spec *spec,
                                     const struct shape *in);
    struct device_values values;
    struct device_order order;
    struct device_images images;

    void *(*alloc)(size_t len); /* zeros; NULL when there is no memory */
    void (*release)(void *at);  /* NULL is allowed */
    /* write: copy from the host, which may change `from` after it; read: copy to the
     * host, all that was put before being done; copy: within the device, where the two do
     * not overlap */
    void (*write)(void *to, const void *from, size_t len);
    int (*read)(void *to, const void *from, size_t len);
    void (*copy)(void *to, const void *from, size_t len);
    void (*zero)(void *at, size_t len);

    void (*add)(float *to, const float *from, size_t n); /* to += from */
    /* Add the squares to *sum.  The CPU adds one after the other, so that the bits do not
     * depend on how the values are cut into calls. */
    void (*squares)(const float *values, size_t n, double *sum);
    /* Scale values, of which there are this many squares in all, down to a norm of
     * `most`, by PyTorch's rule: by most / (norm + 1e-6), if the norm is larger. */
    void (*clip)(float *values, size_t n, const double *squares, double most);
    /* If the loss is not finite, put NaN in place of the last value of each part: part r
     * of so many ends before n * (r + 1) / parts. */
    void (*spoil)(const struct model_score *score, float *values, size_t n,
                  size_t parts);
    /* As wire_pack() and wire_unpack(). */
    void (*pack)(enum wire wire, const float *from, uint16_t *to, size_t n);
    void (*unpack)(enum wire wire, const uint16_t *from, float *to, size_t n);

    /* Begin a step, before its work.  Until the next one begins, picks of this set of
     * images are parts of the step's; passes have its key; and `optim` does not change. */
    void (*begin)(const struct device_step *step);
    /* As softmax_loss(); `job` is the host's. */
    void (*loss)(const struct loss_job *job, struct model_score *score);
    /* Update a part of the parameters; optim->step already counts this step. */
    void (*step)(struct optim *optim, const struct optim_part *part);
};

extern const struct device device_cpu;
extern const struct device device_cuda; /* only with COLL_HAVE_CUDNN */

/* Return 1 if the text is what --device takes: auto, cpu, cuda or cuda:N. */
int device_is_word(const char *text);

/* Return the device of this --device, but for auto; or NULL with train_error() set: this
 * program was built without it.  *number is N, or -1. */
const struct device *device_find(const char *text, int *number);

/* Return 0 if this program was built with GPUs, and finds one and all that it needs; or -1
 * and why[len]. */
int device_find_gpu(char *why, size_t len);

#endif
