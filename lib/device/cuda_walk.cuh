/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_walk.cuh - loops over memory that a team of threads shares.
 *
 * A team is a whole grid, or some blocks of one.  A kernel that runs many steps calls
 * coll::reduce() and coll::change() for each.  Nothing here synchronises: before a kernel
 * reads the stores of another block, grid or process, it has waited for the flag.
 *
 * Results are stored in aligned vectors of 16 bytes.  An input with another alignment
 * is read as two aligned vectors, which are shifted; the vectors never reach beyond the
 * buffer.  So buffers need only be aligned to their elements, at nearly the same speed.
 * The elements at both ends are done one by one.
 *
 * Each thread issues several loads before it needs the first of them.
 */
#ifndef COLL_LIB_DEVICE_CUDA_WALK_CUH
#define COLL_LIB_DEVICE_CUDA_WALK_CUH

#include "lib/device/cuda_ops.cuh"

namespace coll
{
/* This thread among those that share the work. */
struct team {
    size_t rank, size;
};

/* The N inputs and the outputs: dst, and next if it is not NULL.  All are aligned to
 * elements.  dst may be an input; other overlap is invalid. */
template <int N> struct places {
    char *dst, *next;
    const char *in[N];
    size_t len; /* bytes of whole elements */
};

/* ---- vectors ------------------------------------------------------------------ */

#define VECTOR ((size_t)16)

struct vector {
    uint32_t word[4];
};

DEVICE vector load(const char *at)
{
    uint4 v = *(const uint4 *)at;
    vector out = {{v.x, v.y, v.z, v.w}};

    return out;
}

DEVICE void store(char *at, const vector &v)
{
    *(uint4 *)at = make_uint4(v.word[0], v.word[1], v.word[2], v.word[3]);
}

/* Return the 16 bytes that begin `shift` bytes into low:high. */
DEVICE vector between(const vector &low, const vector &high, unsigned shift)
{
    uint32_t w[8], out_of = shift / 4;
    vector out;

#pragma unroll
    for (int i = 0; i < 4; i++) {
        w[i] = low.word[i];
        w[i + 4] = high.word[i];
    }
#pragma unroll
    for (int i = 0; i < 6; i++)
        w[i] = out_of & 2 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        w[i] = out_of & 1 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
        out.word[i] = shift_in(w[i], w[i + 1], shift % 4 * 8);
    return out;
}

/* Write a vector by elements of `size` bytes. */
template <size_t size> DEVICE void store_apart(char *at, const vector &v)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (size >= 4)
            *(uint32_t *)(at + 4 * i) = v.word[i];
        if (size == 2)
            for (int j = 0; j < 2; j++)
                *(uint16_t *)(at + 4 * i + 2 * j) =
                    (uint16_t)(v.word[i] >> 16 * j);
        if (size == 1)
            for (int j = 0; j < 4; j++)
                at[4 * i + j] = (char)(v.word[i] >> 8 * j);
    }
}

/* ---- operations on vectors ------------------------------------------------------ */

template <class Op>
DEVICE vector apply(const Op &op, const vector (&in)[1], uint32_t)
{
    vector out;

#pragma unroll
    for (int i = 0; i < 4; i++)
        out.word[i] = op.of(in[0].word[i]);
    return out;
}

template <class Op>
DEVICE vector apply(const Op &op, const vector (&in)[2], uint32_t)
{
    vector out;

#pragma unroll
    for (int i = 0; i < 4; i++)
        out.word[i] = op.of(in[0].word[i], in[1].word[i]);
    return out;
}

DEVICE uint64_t wide(const vector &v, int i)
{
    return (uint64_t)v.word[2 * i + 1] << 32 | v.word[2 * i];
}

DEVICE void put_wide(vector &v, int i, uint64_t x)
{
    v.word[2 * i] = (uint32_t)x;
    v.word[2 * i + 1] = (uint32_t)(x >> 32);
}

template <class Op>
DEVICE vector apply(const Op &op, const vector (&in)[1], uint64_t)
{
    vector out;

    put_wide(out, 0, op.of(wide(in[0], 0)));
    put_wide(out, 1, op.of(wide(in[0], 1)));
    return out;
}

template <class Op>
DEVICE vector apply(const Op &op, const vector (&in)[2], uint64_t)
{
    vector out;

    put_wide(out, 0, op.of(wide(in[0], 0), wide(in[1], 0)));
    put_wide(out, 1, op.of(wide(in[0], 1), wide(in[1], 1)));
    return out;
}

/* ---- elements ---------------------------------------------------------------- */

template <size_t size> struct element {
};
template <> struct element<1> {
    typedef uint8_t type;
};
template <> struct element<2> {
    typedef uint16_t type;
};
template <> struct element<4> {
    typedef uint32_t type;
};
template <> struct element<8> {
    typedef uint64_t type;
};

template <class E, class Op>
DEVICE E apply_one(const Op &op, const places<1> &p, size_t at)
{
    return (E)op.of(*(const E *)(p.in[0] + at));
}

template <class E, class Op>
DEVICE E apply_one(const Op &op, const places<2> &p, size_t at)
{
    return (E)op.of(*(const E *)(p.in[0] + at), *(const E *)(p.in[1] + at));
}

/* Do the elements before byte `head` and from byte `tail` on. */
template <class Op, int N>
DEVICE void walk_ends(const Op &op, struct team team, const places<N> &p,
                      size_t head, size_t tail)
{
    typedef typename element<Op::size>::type E;
    size_t len = head + p.len - tail;

    for (size_t i = team.rank * sizeof(E); i < len;
         i += team.size * sizeof(E)) {
        size_t at = i < head ? i : i - head + tail;
        E x = apply_one<E>(op, p, at);

        *(E *)(p.dst + at) = x;
        if (p.next)
            *(E *)(p.next + at) = x;
    }
}

/* ---- vectors in memory ---------------------------------------------------------- */

/* Do all buffers have the same alignment within vectors? */
template <int N> DEVICE bool is_alike(const places<N> &p)
{
    size_t differ = p.next ? (size_t)p.next ^ (size_t)p.dst : 0;

#pragma unroll
    for (int k = 0; k < N; k++)
        differ |= (size_t)p.in[k] ^ (size_t)p.dst;
    return differ % VECTOR == 0;
}

/* The vectors that an input vector is read from: two if its alignment differs from
 * dst's. */
template <bool alike> struct source {
};

template <> struct source<true> {
    vector v;

    METHOD void read(const char *at) { v = load(at); }
    METHOD vector get(const char *) const { return v; }
};

template <> struct source<false> {
    vector low, high;

    static METHOD unsigned shift(const char *at)
    {
        return (unsigned)((size_t)at % VECTOR);
    }
    METHOD void read(const char *at)
    {
        low = high = load(at - shift(at));
        if (shift(at))
            high = load(at - shift(at) + VECTOR);
    }
    METHOD vector get(const char *at) const
    {
        return between(low, high, shift(at));
    }
};

/* Do bytes `head` to `tail`, which are whole vectors of dst. */
template <class Op, int N, bool alike>
DEVICE void walk_vectors(const Op &op, struct team team, const places<N> &p,
                         size_t head, size_t tail)
{
    const int n = alike ? Op::at_once / N : 2;
    size_t step = team.size * VECTOR;
    bool is_next_aligned = (size_t)(p.next + head) % VECTOR == 0;

    for (size_t at = head + team.rank * VECTOR; at < tail; at += n * step) {
        source<alike> from[n][N];

#pragma unroll
        for (int i = 0; i < n; i++)
#pragma unroll
            for (int k = 0; k < N; k++)
                if (at + i * step < tail)
                    from[i][k].read(p.in[k] + at + i * step);
#pragma unroll
        for (int i = 0; i < n; i++)
            if (at + i * step < tail) {
                vector in[N], out;

#pragma unroll
                for (int k = 0; k < N; k++)
                    in[k] = from[i][k].get(p.in[k] + at);
                out = apply(op, in, typename Op::word());
                store(p.dst + at + i * step, out);
                if (p.next && (alike || is_next_aligned))
                    store(p.next + at + i * step, out);
                else if (p.next)
                    store_apart<Op::size>(p.next + at + i * step, out);
            }
    }
}

/* Do all of it, as one thread of the team. */
template <class Op, int N>
DEVICE void walk(const Op &op, struct team team, const places<N> &p)
{
    bool alike = is_alike(p);
    size_t head = -(size_t)p.dst % VECTOR;
    size_t spare = alike ? 0 : VECTOR; /* source<false> reads beyond */
    size_t tail;

    if (p.len < head + 2 * spare + VECTOR) {
        walk_ends(op, team, p, p.len, p.len);
        return;
    }
    head += spare;
    tail = head + (p.len - head - spare) / VECTOR * VECTOR;
    walk_ends(op, team, p, head, tail);
    if (alike)
        walk_vectors<Op, N, true>(op, team, p, head, tail);
    else
        walk_vectors<Op, N, false>(op, team, p, head, tail);
}

/* ---- what steps call ------------------------------------------------------------- */

/* dst = next = op(a, b) */
template <class Op>
DEVICE void reduce(struct team team, void *dst, void *next, const void *a,
                   const void *b, size_t len)
{
    places<2> p = {
        (char *)dst, (char *)next, {(const char *)a, (const char *)b}, len};

    walk(Op(), team, p);
}

/* dst = next = op(src) */
template <class Op>
DEVICE void change(const Op &op, struct team team, void *dst, void *next,
                   const void *src, size_t len)
{
    places<1> p = {(char *)dst, (char *)next, {(const char *)src}, len};

    walk(op, team, p);
}

/* dst = src / n_ranks; magic = coll__cuda_magic(n_ranks). */
template <typename T>
DEVICE void divide(struct team team, void *dst, const void *src, size_t len,
                   int n_ranks, uint64_t magic)
{
    if constexpr (is_in_f32<T>::value)
        if (n_ranks > COLL__FEW_RANKS) {
            change(scale_by_many<T>(n_ranks), team, dst, NULL, src, len);
            return;
        }
    change(scale<T>(n_ranks, magic), team, dst, NULL, src, len);
}
} // namespace coll

#endif
