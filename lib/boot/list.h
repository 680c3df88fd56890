/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - declares each bootstrap; code that goes through all of them uses coll__boots
 * (boot.h). */
#ifndef COLL_LIB_BOOT_LIST_H
#define COLL_LIB_BOOT_LIST_H

#include "lib/boot/boot.h"

extern const struct coll__boot_ops coll__boot_collrun;
extern const struct coll__boot_ops coll__boot_lobby;
extern const struct coll__boot_ops coll__boot_pmix; /* if built with PMIx */
extern const struct coll__boot_ops coll__boot_pmi;
extern const struct coll__boot_ops coll__boot_ompi;
extern const struct coll__boot_ops coll__boot_torchrun;
extern const struct coll__boot_ops coll__boot_horovod;
extern const struct coll__boot_ops coll__boot_slurm;
extern const struct coll__boot_ops coll__boot_single;

#endif
