/* SPDX-License-Identifier: BSD-3-Clause */
/* loader.h - a thread that gathers the images of the next step while the model
 * works on this one.
 *
 * What is asked for ahead is only a hint: loader_take() returns the images that
 * its caller names, and gathers them itself if they are not there.  So the same
 * numbers come in the same order with and without the thread.
 */
#ifndef COLL_TRAINER_LOADER_H
#define COLL_TRAINER_LOADER_H

#include "trainer/model.h"

#include <stddef.h>
#include <stdint.h>

struct loader;

/* Make a loader that fills the model's input.
 *
 * Shapes:    has_thread: gather ahead, for a device that is not asynchronous; else
 *            loader_ask() does nothing.
 * Result:    0, or -1 with train_error() set.
 * Ownership: *loader is the caller's, to end by loader_destroy(); model and device
 *            are borrowed until then.
 */
int loader_create(struct loader **loader, struct model *model,
                  const struct device *device, int has_thread);

/* End the thread, whatever it does; NULL is allowed. */
void loader_destroy(struct loader *loader);

/* Begin to gather; call it only while nothing else is asked for.
 *
 * Ownership: what pick points to must not change until the next loader_take()
 *            or loader_drop().
 * Threads:   the training thread, as for all functions here.
 * Cost:      a lock, and a wake-up.
 */
void loader_ask(struct loader *loader, const struct images_pick *pick);

/* Put these images into the model's input, and return their labels, of the device and
 * valid until the next loader_take(). */
const unsigned char *loader_take(struct loader *loader,
                                 const struct images_pick *pick);

/* Drop the current request.  After the call the loader reads none of its data. */
void loader_drop(struct loader *loader);

#endif
