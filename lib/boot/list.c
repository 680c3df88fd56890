/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - the bootstraps, in order of preference.  A launcher's own variables take
 * precedence over those that a job script may have exported. */
#include "lib/boot/list.h"

const struct coll__boot_ops *const coll__boots[] = {
    &coll__boot_collrun,
    &coll__boot_lobby,
#if COLL_HAVE_PMIX
    &coll__boot_pmix,
#endif
    &coll__boot_pmi,
    &coll__boot_ompi,
    &coll__boot_torchrun,
    &coll__boot_horovod,
    &coll__boot_slurm,
    &coll__boot_single,
    NULL,
};
