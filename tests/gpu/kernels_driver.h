/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_driver.h - the product's own table of the CUDA driver, on a GPU. */
#ifndef TESTS_GPU_KERNELS_DRIVER_H
#define TESTS_GPU_KERNELS_DRIVER_H

#include "lib/device/cuda_driver.h"

/* Open the driver by coll__cuda_driver() and call those of its entries that the
 * kernels do not need.  Device 0's primary context is current afterwards.
 *
 * Result:    the entries; NULL, and why in words: an entry did not do what its
 *            declaration says.
 */
const struct coll__cuda *kernels_driver(char *why, size_t len);

#endif
