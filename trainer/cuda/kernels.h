/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.h - the trainer's kernels for CUDA: their image for the driver, and the names
 * and parameters of their entries.  Plain C, for the host and for CUDA C++ alike.
 *
 * An entry train_<name>_<type> is found by cuModuleGetFunction() and started by
 * cuLaunchKernel() with a grid and blocks of one dimension, of TRAIN_CUDA_THREADS threads
 * at most.  All threads of the grid share the work, so that any number of blocks gives
 * the same bits.  There are fewer than 2^32 threads.
 *
 * A buffer is a span: an address and its bytes, aligned to elements; kernels are fastest
 * at multiples of 16 bytes.  How much there is to do follows from the spans' lengths.
 * "absent" is a span of no bytes.  Feature maps are [image][y][x][channel]; a "row" is the
 * channels of one pixel.  Parameters, their gradients and statistics are f32, in the order
 * of layers.h; activations are of the entry's type, with arithmetic in f32.
 *
 * Sums have the same bits in each run: fold() adds rows into fewer rows, and is started
 * again on its result until few enough are left:
 *
 *     to[i] = from[i] + from[i + n] + from[i + 2 n] + ..., n elements in `to`
 *
 * So one with n = slices * channels leaves `slices` rows of sums, one more with n =
 * channels the sums of the channels.  A thread adds what goes into one place, or into 16
 * bytes of places, so n is how much is done at once: some 2^18 places occupy a large GPU.
 * Of many slices the next fold had better leave the square root.
 *
 * Where nothing else is said, an output may be the input of the same size and type;
 * other overlap is invalid.
 */
#ifndef COLL_TRAINER_CUDA_KERNELS_H
#define COLL_TRAINER_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define TRAIN_CUDA_THREADS 256 /* of a block at most */

/* Arrays of so many floats a channel that belong to a norm layer: mean, 1 / deviation, and
 * what a loop needs: a, b, c. */
#define TRAIN_CUDA_NORM_ARRAYS 5

/* How cuLaunchKernel() takes a buffer. */
struct train_span {
    uint64_t at, len; /* len: bytes; 0: absent */
};

/* What kernels read that is new in each step, so that their parameters are not. */
struct train_step {
    uint64_t augment, dropout; /* keys: images_pick's, a pass's */
    uint64_t first; /* place of this rank's first image in the global batch */
    float rate, epsilon; /* of the optimizer; see optim_adam_rates() */
};

/* X(name, type, letters, (parameters), (arguments)): the entry train_<name>_<type>.
 * Letters, one for each parameter: s a span, u 4 bytes (uint32_t or float), w 8 bytes
 * (uint64_t or double).
 *
 * ---- layers, for T = float (f32) and bf16 ----
 *
 * bias_relu     out = relu(out + biases), biases: [channels] or absent; relu: 0 or 1
 * relu_back     dout = 0 where not out > 0
 * add           to += from
 * fold          to[i] = sum of from[i + k n], n = elements of `to`; add 1: is added to
 *               `to`.  `to` is no input
 * pack_weights  from [outs][ins][area] to [outs][area][padded]; zeros behind `ins`
 * unpack_weights  the gradient [outs][area][padded] is added to [outs][ins][area]
 * pad_channels  from rows of `channels` to rows of `padded`: more, which are 0, or fewer
 * pool          max pool of height x width maps; relu 1: then relu.  NaN is the largest
 * pool_back     in, out: of pool(); din is written.  A window's dout goes to its first
 *               largest value.  No overlap
 * mean          the mean of each map: in [images][pixels][channels] to
 *               out [images][channels]
 * mean_back     din = dout / pixels
 * dropout       at: the first image's place among this rank's of the step; layer: its
 *               number; values: len of an image; floor: rate * 2^32; scale: 1 / (1 - rate)
 * dropout_maps  whole maps
 * softmax       scores [n][classes], labels [n]; dscores or absent; sums [n][2]: each
 *               row's loss, and 1 if its largest score is the label's.  fold_f64 adds them
 *               up.  scale, smoothing: loss_job's
 * gather        pixels, labels: of the images [image][channel][y][x]; index: [n] images;
 *               table: [256], what a pixel becomes; out: [n] images as rows; picked: [n]
 *               labels.  augment: enum augment; without it step may be absent; at: as for
 *               dropout
 *
 * norm, with its state of TRAIN_CUDA_NORM_ARRAYS [channels]; rows: so many count, the
 * first ones:
 *   forward in training   fold of the rows that count; norm_mean; norm_squares, fold;
 *                         norm_finish; norm_apply
 *   forward in a test     norm_finish, its partial absent; norm_apply
 *   backward              norm_products, fold; norm_factors; norm_back
 *
 * norm_mean     partial: [slices][channels] sums of rows
 * norm_squares  in: the rows that count; partial[i] = sum of (in - mean)^2 as fold
 * norm_finish   sets the state and moves the running statistics [2][channels]
 * norm_apply    out = relu(a in + b + plus); plus or absent
 * norm_products out: for relu, or absent.  dout = 0 where not out > 0, dplus (or absent) =
 *               dout; partial: [slices][2][channels] sums of dout and dout (in - mean)
 * norm_factors  adds to dweights and dbiases; partial: what norm_products left, folded
 *               to fewer slices or not
 * norm_back     din = a dout + b (in - mean) + c, 0 behind the rows that count
 */
#define TRAIN_CUDA_LAYERS(X, type, T)                                          \
    X(bias_relu, type, "ssu",                                                  \
      (span<T> out, span<const float> biases, uint32_t relu),                  \
      (out, biases, relu))                                                     \
    X(relu_back, type, "ss", (span<const T> out, span<T> dout), (out, dout))   \
    X(add, type, "ss", (span<T> to, span<const T> from), (to, from))           \
    X(fold, type, "ssu", (span<const T> from, span<float> to, uint32_t add),   \
      (from, to, add))                                                         \
    X(pack_weights, type, "ssuuu",                                             \
      (span<const float> from, span<T> to, uint32_t ins, uint32_t padded,      \
       uint32_t area),                                                         \
      (from, to, ins, padded, area))                                           \
    X(unpack_weights, type, "ssuuu",                                           \
      (span<const T> from, span<float> to, uint32_t ins, uint32_t padded,      \
       uint32_t area),                                                         \
      (from, to, ins, padded, area))                                           \
    X(pad_channels, type, "ssuu",                                              \
      (span<const T> from, span<T> to, uint32_t channels, uint32_t padded),    \
      (from, to, channels, padded))                                            \
    X(pool, type, "ssuuuuuuu",                                                 \
      (span<const T> in, span<T> out, uint32_t channels, uint32_t height,      \
       uint32_t width, uint32_t kernel, uint32_t stride, uint32_t pad,         \
       uint32_t relu),                                                         \
      (in, out, {channels, height, width, kernel, stride, pad}, relu))         \
    X(pool_back, type, "ssssuuuuuuu",                                          \
      (span<const T> in, span<const T> out, span<const T> dout, span<T> din,   \
       uint32_t channels, uint32_t height, uint32_t width, uint32_t kernel,    \
       uint32_t stride, uint32_t pad, uint32_t relu),                          \
      (in, out, dout, din, {channels, height, width, kernel, stride, pad},     \
       relu))                                                                  \
    X(mean, type, "ssu", (span<const T> in, span<T> out, uint32_t channels),   \
      (in, out, channels))                                                     \
    X(mean_back, type, "ssu",                                                  \
      (span<const T> dout, span<T> din, uint32_t channels),                    \
      (dout, din, channels))                                                   \
    X(dropout, type, "ssswuuuu",                                               \
      (span<const T> from, span<T> to, span<const train_step> step,            \
       uint64_t at, uint32_t layer, uint32_t values, uint32_t floor,           \
       float scale),                                                           \
      (from, to, draw_of(step, at, layer), values, floor, scale))              \
    X(dropout_maps, type, "ssswuuuuu",                                         \
      (span<const T> from, span<T> to, span<const train_step> step,            \
       uint64_t at, uint32_t layer, uint32_t channels, uint32_t pixels,        \
       float rate, float scale),                                               \
      (from, to, draw_of(step, at, layer), {channels, pixels}, rate, scale))   \
    X(softmax, type, "ssssuuw",                                                \
      (span<const T> scores, span<const uint8_t> labels, span<T> dscores,      \
       span<double> sums, uint32_t classes, float scale, double smoothing),    \
      (scores, labels, dscores, sums, {classes, scale, smoothing}))            \
    X(gather, type, "sssssssuuuuw",                                            \
      (span<const uint8_t> pixels, span<const uint8_t> labels,                 \
       span<const uint32_t> index, span<const float> table, span<T> out,       \
       span<uint8_t> picked, span<const train_step> step, uint32_t channels,   \
       uint32_t height, uint32_t width, uint32_t augment, uint64_t at),        \
      ({pixels, labels, index, table}, out, picked,                            \
       {channels, height, width, augment}, draw_of(step, at)))                 \
    X(norm_squares, type, "sss",                                               \
      (span<const T> in, span<float> partial, span<const float> state),        \
      (in, partial, state))                                                    \
    X(norm_apply, type, "ssssu",                                               \
      (span<const T> in, span<const T> plus, span<T> out,                      \
       span<const float> state, uint32_t relu),                                \
      (in, plus, out, state, relu))                                            \
    X(norm_products, type, "ssssssw",                                          \
      (span<const T> in, span<const T> out, span<T> dout, span<T> dplus,       \
       span<float> partial, span<const float> state, uint64_t rows),           \
      (in, out, dout, dplus, partial, state, rows))                            \
    X(norm_back, type, "ssssw",                                                \
      (span<const T> in, span<const T> dout, span<T> din,                      \
       span<const float> state, uint64_t rows),                                \
      (in, dout, din, state, rows))

/* norm_*: above.
 *
 * sgd, adam, adagrad  optim.h's rules; decay: weight_decay; canary: optim_part's, or
 *               absent
 * clip, spoil   as in device.h; score: [2], the loss first
 * squares       to[i] = sum of from[i + k n]^2, n = elements of `to`; fold_f64 adds them up
 * fold_f64      fold, from f64 to f64
 * pack, unpack  from f32 to 16 bits, as wire.h has them, and back
 * paint         images of a synthetic set (synthetic.h): patterns; index: [n] images;
 *               pixels: [n][channel][y][x], labels: [n], order: [n], 0 to n - 1: what
 *               gather takes
 */
#define TRAIN_CUDA_PLAIN(X)                                                    \
    X(norm_mean, f32, "ssw",                                                   \
      (span<const float> partial, span<float> state, uint64_t rows),           \
      (partial, state, rows))                                                  \
    X(norm_finish, f32, "sssssw",                                              \
      (span<const float> partial, span<float> state, span<float> running,      \
       span<const float> weights, span<const float> biases, uint64_t rows),    \
      (partial, state, running, weights, biases, rows))                        \
    X(norm_factors, f32, "ssssswu",                                            \
      (span<const float> partial, span<float> state,                           \
       span<const float> weights, span<float> dweights, span<float> dbiases,   \
       uint64_t rows, uint32_t is_training),                                   \
      (partial, state, weights, dweights, dbiases, rows, is_training))         \
    X(sgd, f32, "sssssuuu",                                                    \
      (span<float> params, span<const float> gradients, span<float> velocity,  \
       span<const float> canary, span<const train_step> step, float momentum,  \
       float decay, uint32_t nesterov),                                        \
      (params, gradients, velocity, canary,                                    \
       {step.items()->rate, momentum, decay, nesterov}))                       \
    X(adam, f32, "ssssssuuu",                                                  \
      (span<float> params, span<const float> gradients, span<float> mean,      \
       span<float> square, span<const float> canary,                           \
       span<const train_step> step, float beta1, float beta2, float decay),    \
      (params, gradients, mean, square, canary,                                \
       {step.items()->rate, beta1, beta2, step.items()->epsilon, decay}))      \
    X(adagrad, f32, "sssssuu",                                                 \
      (span<float> params, span<const float> gradients, span<float> sum,       \
       span<const float> canary, span<const train_step> step, float epsilon,   \
       float decay),                                                           \
      (params, gradients, sum, canary, {step.items()->rate, epsilon, decay}))  \
    X(clip, f32, "ssw",                                                        \
      (span<float> values, span<const double> squares, double most),           \
      (values, squares, most))                                                 \
    X(spoil, f32, "ssu",                                                       \
      (span<const double> score, span<float> values, uint32_t parts),          \
      (score, values, parts))                                                  \
    X(squares, f32, "ss", (span<const float> from, span<double> to),           \
      (from, to))                                                              \
    X(fold, f64, "ssu",                                                        \
      (span<const double> from, span<double> to, uint32_t add),                \
      (from, to, add))                                                         \
    X(paint, f32, "sssssuuuww",                                                \
      (span<const float> patterns, span<const uint32_t> index,                 \
       span<uint8_t> pixels, span<uint8_t> labels, span<uint32_t> order,       \
       uint32_t channels, uint32_t height, uint32_t width, uint64_t key,       \
       uint64_t first),                                                        \
      ({patterns, key, first}, index, pixels, labels, order,                   \
       {channels, height, width, 0}))                                          \
    X(pack, f16, "ss", (span<const float> from, span<f16> to), (from, to))     \
    X(pack, bf16, "ss", (span<const float> from, span<bf16> to), (from, to))   \
    X(unpack, f16, "ss", (span<const f16> from, span<float> to), (from, to))   \
    X(unpack, bf16, "ss", (span<const bf16> from, span<float> to), (from, to))

#define TRAIN_CUDA_KERNELS(X)                                                  \
    TRAIN_CUDA_LAYERS(X, f32, float)                                           \
    TRAIN_CUDA_LAYERS(X, bf16, bf16)                                           \
    TRAIN_CUDA_PLAIN(X)

#ifndef __cplusplus
/* A fat binary for cuModuleLoadData(): machine code for several architectures, and PTX
 * for later ones.  Built by nvcc; empty without it. */
extern const unsigned char train_cuda_image[];
#endif

#endif
