/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.h - lib/device/cuda_kernels.cu and trainer/cuda/kernels.cu on the host. */
#ifndef COLL_TESTS_FAKE_KERNELS_H
#define COLL_TESTS_FAKE_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Run an entry as cuLaunchKernel() would, one thread after the other, the last
 * one first where is_backwards says so.
 *
 * Result:    0; -1 when there is no such entry.
 * Threads:   any.
 */
int fake_kernel_run(const char *entry, unsigned blocks, unsigned threads,
                    void **params, int is_backwards);

/* What an entry's parameters are, a letter each: p an address of len bytes, n the
 * same or NULL, l that len, s a span (struct train_span), u 4 bytes, w 8 bytes.  NULL:
 * there is no such entry. */
const char *fake_kernel_params(const char *entry);

/* The bytes of an element of parameter i, a span. */
unsigned fake_kernel_item(const char *entry, int i);

#ifdef __cplusplus
}
#endif
#endif
