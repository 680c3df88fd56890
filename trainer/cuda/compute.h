/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.h - what a GPU computes beside the layers: as the functions of the device's
 * table. */
#ifndef COLL_TRAINER_CUDA_COMPUTE_H
#define COLL_TRAINER_CUDA_COMPUTE_H

#include "trainer/cuda/kernels.h"
#include "trainer/device.h"

/* Make what the functions below need, and free it.  compute_init: 0, or -1 with
 * train_error() set. */
int compute_init(void);
void compute_fini(void);

void compute_add(float *to, const float *from, size_t n);
void compute_squares(const float *values, size_t n, double *sum);
void compute_clip(float *values, size_t n, const double *squares, double most);
void compute_spoil(const struct model_score *score, float *values, size_t n,
                   size_t parts);
void compute_pack(enum wire wire, const float *from, uint16_t *to, size_t n);
void compute_unpack(enum wire wire, const uint16_t *from, float *to, size_t n);
void compute_loss(const struct loss_job *job, struct model_score *score);
void compute_step(struct optim *optim, const struct optim_part *part);

/* step.c: compute_step_numbers: return where kernels find the step's numbers, of the GPU.
 * compute_step_place: return an image's place among those of this rank in the step, from
 * its place in the global batch. */
int compute_step_init(void);
void compute_step_fini(void);
void compute_begin(const struct device_step *step);
struct train_span compute_step_numbers(void);
uint64_t compute_step_place(size_t first);

/* images.c: compute_bring: have the images of a step at hand. */
void compute_bring(const struct images_pick *step);
int compute_hold(struct images *images);
void compute_let_go(struct images *images);
void compute_gather(const struct images_pick *pick, float *out,
                    unsigned char *labels);
void compute_images_fini(void);

#endif
