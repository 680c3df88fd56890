/* SPDX-License-Identifier: BSD-3-Clause */
/* object.h - what the handles and descriptors of both libraries point to.
 *
 * Objects are never used again, so that one which was destroyed is known as such: whoever
 * passes it is ended with a sentence, where NVIDIA leaves it open what happens.
 */
#ifndef COLL_TESTS_FAKE_CUDNN_OBJECT_H
#define COLL_TESTS_FAKE_CUDNN_OBJECT_H

#include <stddef.h>

enum kind {
    DNN_HANDLE,
    TENSOR,
    FILTER,
    CONVOLUTION,
    LT_HANDLE,
    MATMUL,
    LAYOUT,
    PREFERENCE
};

/* Make one of `size` bytes, zeros. */
void *object_new(enum kind kind, size_t size);

/* Return the object that is alive; NULL for NULL; else the process ends. */
void *object_of(const void *handle, enum kind kind, const char *entry);

/* Destroy it: no later call may pass it. */
void object_end(const void *handle, enum kind kind, const char *entry);

#endif
