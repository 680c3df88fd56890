/* SPDX-License-Identifier: BSD-3-Clause */
/* data_file.c - plain files by read(), gzipped ones by zlib's inflate().
 *
 * zlib's gzread() would be shorter, but it takes a .gz that has lost its last
 * bytes, which are the check sum, for a whole one.  inflate() says when it has
 * compared the check sum: only then is a gzipped file at its end.
 */
#include "trainer/data_file.h"
#include "trainer/error.h"

#include <zlib.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_INFLATION 1032 /* of deflate, by its format */
#define PIECE (64 * 1024)  /* bytes read from the disk at once */
#define WINDOW (15 + 16)   /* inflate(): the largest window, in gzip's form */

struct data_unpacker {
    z_stream z; /* next_in and avail_in also serve a plain file */
    int is_gz;
    int is_between; /* of a .gz: no part has begun, or the last one is
                     * complete */
    unsigned char piece[PIECE];
};

/* Read the next piece from the disk when the last one is used up. */
static int fill(struct data_file *f)
{
    struct data_unpacker *u = f->unpacker;
    ssize_t n;

    if (u->z.avail_in > 0)
        return 0;
    do
        n = read(f->fd, u->piece, PIECE);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return train_fail("cannot read %s: %s; check its disk", f->path,
                          strerror(errno));
    u->z.next_in = u->piece;
    u->z.avail_in = (unsigned)n;
    return 0;
}

/* Gzipped files begin with these two bytes, whatever their name is. */
static int start(struct data_file *f)
{
    struct data_unpacker *u = f->unpacker;

    if (fill(f))
        return -1;
    u->is_gz =
        u->z.avail_in >= 2 && u->piece[0] == 0x1f && u->piece[1] == 0x8b;
    u->is_between = 1;
    if (u->is_gz && inflateInit2(&u->z, WINDOW) != Z_OK) {
        u->is_gz = 0;
        return train_fail("out of memory to unpack %s; use fewer ranks on this "
                          "machine",
                          f->path);
    }
    return 0;
}

static int open_file(struct data_file *f)
{
    struct stat st;

    if (stat(f->path, &st))
        return train_refuse("cannot read %s: %s; check --data-dir", f->path,
                            strerror(errno));
    if (!S_ISREG(st.st_mode))
        return train_refuse("%s is not a file; check --data-dir", f->path);
    f->disk_bytes = (size_t)st.st_size;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    return f->fd < 0 ? train_fail("cannot read %s: %s; check its permissions",
                                  f->path, strerror(errno))
                     : 0;
}

int data_file_open(struct data_file *f, const char *path)
{
    *f = (struct data_file){.fd = -1, .path = path};
    if (open_file(f))
        return -1;
    f->unpacker = calloc(1, sizeof(*f->unpacker));
    if (!f->unpacker)
        return train_fail("out of memory to read %s; use fewer ranks on this "
                          "machine",
                          path);
    return start(f);
}

int data_file_cut_off(const struct data_file *f)
{
    return train_refuse("%s is cut off or damaged; fetch it again", f->path);
}

static size_t copy_piece(struct data_unpacker *u, unsigned char *to, size_t len)
{
    size_t n = len < u->z.avail_in ? len : u->z.avail_in;

    if (n)
        memcpy(to, u->z.next_in, n);
    u->z.next_in += n;
    u->z.avail_in -= (unsigned)n;
    return n;
}

/* Unpack up to `len` bytes to `to`; *n is their number.  At the end of each part of the
 * file, inflate() compares the part's check sum. */
static int inflate_piece(struct data_file *f, unsigned char *to, size_t len,
                         size_t *n)
{
    struct data_unpacker *u = f->unpacker;
    unsigned room = len > 1u << 30 ? 1u << 30 : (unsigned)len;
    int st;

    u->is_between = 0;
    u->z.next_out = to;
    u->z.avail_out = room;
    st = inflate(&u->z, Z_NO_FLUSH);
    *n = room - u->z.avail_out;
    if (st == Z_STREAM_END) { /* another part may follow */
        u->is_between = 1;
        st = inflateReset(&u->z);
    }
    return st == Z_OK ? 0 : data_file_cut_off(f);
}

/* Read up to `len` bytes into *n; fewer only where the file ends. */
static int read_most(struct data_file *f, unsigned char *to, size_t len,
                     size_t *n)
{
    struct data_unpacker *u = f->unpacker;

    for (*n = 0; *n < len;) {
        size_t part = 0;

        if (fill(f))
            return -1;
        if (u->z.avail_in == 0)
            return u->is_between ? 0 : data_file_cut_off(f);
        if (!u->is_gz)
            part = copy_piece(u, to + *n, len - *n);
        else if (inflate_piece(f, to + *n, len - *n, &part))
            return -1;
        *n += part;
    }
    return 0;
}

int data_file_read(struct data_file *f, void *to, size_t len)
{
    size_t n;

    if (read_most(f, to, len, &n))
        return -1;
    return n < len ? data_file_cut_off(f) : 0;
}

int data_file_next(struct data_file *f, void *to, size_t len)
{
    size_t n;

    if (read_most(f, to, len, &n))
        return -1;
    if (n == 0)
        return 0;
    return n < len ? data_file_cut_off(f) : 1;
}

int data_file_end(struct data_file *f)
{
    unsigned char more;
    size_t n;

    if (read_most(f, &more, 1, &n))
        return -1;
    if (n > 0)
        return train_refuse("%s holds more than its header says; fetch it "
                            "again",
                            f->path);
    return 0;
}

void data_file_close(struct data_file *f)
{
    if (f->unpacker && f->unpacker->is_gz)
        inflateEnd(&f->unpacker->z);
    free(f->unpacker);
    f->unpacker = NULL;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

size_t data_file_most(const struct data_file *f)
{
    return f->disk_bytes > SIZE_MAX / MAX_INFLATION
               ? SIZE_MAX
               : f->disk_bytes * MAX_INFLATION;
}
