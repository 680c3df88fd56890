/* SPDX-License-Identifier: BSD-3-Clause */
/* data_file.h - a data set's file, plain or gzipped, read from front to back. */
#ifndef COLL_TRAINER_DATA_FILE_H
#define COLL_TRAINER_DATA_FILE_H

#include <stddef.h>

struct data_unpacker;

struct data_file {
    int fd;
    const char *path; /* borrowed */
    size_t disk_bytes;
    struct data_unpacker *unpacker;
};

/* Open the file at `path`.
 *
 * Result:    0, or -1 with train_error() set, as from all functions here.
 * Ownership: the caller ends *f by data_file_close() in either case.
 */
int data_file_open(struct data_file *f, const char *path);
void data_file_close(struct data_file *f);

/* Return how many bytes the file can hold at most, unpacked. */
size_t data_file_most(const struct data_file *f);

/* Read exactly `len` bytes. */
int data_file_read(struct data_file *f, void *to, size_t len);

/* Read a record of `len` bytes.
 *
 * Result:    1; 0 when the file ends before the record; -1 when it ends within
 *            the record or is damaged.
 */
int data_file_next(struct data_file *f, void *to, size_t len);

/* Check that the file ends here, and that a .gz has the check sum and the length
 * that it says. */
int data_file_end(struct data_file *f);

/* Set the error "cut off or damaged"; returns -1. */
int data_file_cut_off(const struct data_file *f);

#endif
