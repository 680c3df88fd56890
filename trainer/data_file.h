/* SPDX-License-Identifier: BSD-3-Clause */
/* data_file.h - a data set's file, plain or gzipped, read from front to back. */
#ifndef COLL_TRAINER_DATA_FILE_H
#define COLL_TRAINER_DATA_FILE_H

#include <stddef.h>

struct gzFile_s;

struct data_file {
    struct gzFile_s *file;
    const char *path; /* borrowed */
    size_t disk_bytes;
};

/* Open it.  Result: 0, or -1 with train_error() set, as from all functions
 * here.  Ownership: end it by data_file_close() either way. */
int data_file_open(struct data_file *f, const char *path);
void data_file_close(struct data_file *f);

/* Return how many bytes the file can hold at most, unpacked. */
size_t data_file_most(const struct data_file *f);

/* Read exactly len bytes. */
int data_file_read(struct data_file *f, void *to, size_t len);

/* Read len bytes.  Result: 1, 0 when the file ends before the first, -1 when it
 * ends in between or is damaged. */
int data_file_next(struct data_file *f, void *to, size_t len);

/* The file must end here; for .gz this also verifies its check sum. */
int data_file_end(struct data_file *f);

/* Say that the file is cut off or damaged; returns -1. */
int data_file_cut_off(const struct data_file *f);

#endif
