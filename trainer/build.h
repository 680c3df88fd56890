/* SPDX-License-Identifier: BSD-3-Clause */
/* build.h - coll_train --check-build. */
#ifndef COLL_TRAINER_BUILD_H
#define COLL_TRAINER_BUILD_H

/* Print what this build can do, as collrun --check-build, and the kernels that
 * train. */
void build_print(void);

#endif
