/* SPDX-License-Identifier: BSD-3-Clause */
/* late_device.h - ordinary memory, worked on by a queue that is late: what is begun
 * there is done when it is polled for, some of it at a time, or not yet. */
#ifndef COLL_TESTS_LATE_DEVICE_H
#define COLL_TESTS_LATE_DEVICE_H

#include "lib/device/device.h"

extern const struct coll__device late_device;

/* Begin with an empty queue, and other draws; with fails_at >= 0 the device fails
 * when so many works have been done.  One thread at a time. */
void late_begin(unsigned seed, int fails_at);

/* How many works wait, and the most that ever did. */
int late_n_waiting(void);
int late_most(void);

#endif
