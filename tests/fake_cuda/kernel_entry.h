/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_entry.h - a kernel that is compiled for the host, for the files that have some. */
#ifndef COLL_TESTS_FAKE_KERNEL_ENTRY_H
#define COLL_TESTS_FAKE_KERNEL_ENTRY_H

struct fake_entry {
    const char *name, *params;  /* params: as fake_kernel_params() has them */
    void (*run)(void **params); /* one thread */
    const unsigned char *items; /* of spans: bytes of an element */
};

/* Return the trainer's kernel of that name, or NULL. */
const fake_entry *fake_trainer_entry(const char *name);

#endif
