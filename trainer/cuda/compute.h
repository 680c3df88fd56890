/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.h - what a GPU computes beside the layers: as the functions of the device's
 * table. */
#ifndef COLL_TRAINER_CUDA_COMPUTE_H
#define COLL_TRAINER_CUDA_COMPUTE_H

#include "trainer/device.h"

/* Make what the functions below need, and free it.  compute_init: 0, or -1 with
 * train_error() set. */
int compute_init(void);
void compute_fini(void);

void compute_add(float *to, const float *from, size_t n);
void compute_scale(float *values, size_t n, float factor);
int compute_squares(const float *values, size_t n, double *sum);
void compute_pack(enum wire wire, const float *from, uint16_t *to, size_t n);
void compute_unpack(enum wire wire, const uint16_t *from, float *to, size_t n);
int compute_loss(const struct loss_job *job, struct model_score *score);
void compute_step(struct optim *optim, const struct optim_part *part);

/* images.c */
int compute_hold(struct images *images);
void compute_let_go(struct images *images);
void compute_gather(const struct images_pick *pick, float *out,
                    unsigned char *labels);
void compute_images_fini(void);

#endif
