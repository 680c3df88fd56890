/* SPDX-License-Identifier: BSD-3-Clause */
/* data_file.c - by zlib's gzopen, which reads plain files as they are. */
#include "trainer/data_file.h"
#include "trainer/error.h"

#include <zlib.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_INFLATION 1032 /* of deflate, by its format */

int data_file_open(struct data_file *f, const char *path)
{
    struct stat st;

    f->path = path;
    f->file = NULL;
    if (stat(path, &st))
        return train_refuse("cannot read %s: %s; check --data-dir", path,
                            strerror(errno));
    if (!S_ISREG(st.st_mode))
        return train_refuse("%s is not a file; check --data-dir", path);
    f->disk_bytes = (size_t)st.st_size;
    f->file = gzopen(path, "rb");
    if (!f->file)
        return train_fail("cannot read %s: %s; check its permissions", path,
                          errno ? strerror(errno) : "out of memory");
    return 0;
}

int data_file_cut_off(const struct data_file *f)
{
    return train_refuse("%s is cut off or damaged; fetch it again", f->path);
}

int data_file_read(struct data_file *f, void *to, size_t len)
{
    unsigned char *p = to;

    while (len > 0) {
        unsigned part = len > 1u << 30 ? 1u << 30 : (unsigned)len;
        int n = gzread(f->file, p, part);

        if (n <= 0)
            return data_file_cut_off(f);
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int data_file_next(struct data_file *f, void *to, size_t len)
{
    int first = gzgetc(f->file), error;
    unsigned char *p = to;

    if (first < 0) {
        gzerror(f->file, &error);
        return error == Z_OK || error == Z_STREAM_END ? 0
                                                      : data_file_cut_off(f);
    }
    *p = (unsigned char)first;
    return data_file_read(f, p + 1, len - 1) ? -1 : 1;
}

int data_file_end(struct data_file *f)
{
    char more;
    int n = gzread(f->file, &more, 1), error;

    gzerror(f->file, &error);
    if (n < 0 || (error != Z_OK && error != Z_STREAM_END))
        return data_file_cut_off(f);
    if (n > 0)
        return train_refuse("%s holds more than its header says; fetch it "
                            "again",
                            f->path);
    return 0;
}

void data_file_close(struct data_file *f)
{
    if (f->file)
        gzclose(f->file);
    f->file = NULL;
}

size_t data_file_most(const struct data_file *f)
{
    return f->disk_bytes > SIZE_MAX / MAX_INFLATION
               ? SIZE_MAX
               : f->disk_bytes * MAX_INFLATION;
}
