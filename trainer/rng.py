# SPDX-License-Identifier: BSD-3-Clause
"""What coll_train draws, for programs that do the same job by PyTorch.

The functions of trainer/rng.h, of whole sequences as tensors, and the orders of
trainer/sampler.c.  It needs PyTorch and nothing else.
"""
import torch

INIT, SHUFFLE, DROPOUT, SYNTHETIC, AUGMENT = range(1, 6)  # enum rng_stream
MASK = (1 << 64) - 1


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def rng_key(key, which):
    return mix(mix((key + 0x9E3779B97F4A7C15) & MASK)
               ^ (which + 1) * 0xD1B54A32D192ED03 & MASK)


def rng_bits(key, i):
    return mix((key + (i + 1) * 0x9E3779B97F4A7C15) & MASK)


def rng_below(key, i, n):
    return rng_bits(key, i) * n >> 64


def signed(x):
    return x - (1 << 64) if x >> 63 else x


def shifted(x, n):
    """A tensor of int64 as unsigned, shifted right."""
    return x >> n & ((1 << 64 - n) - 1)


def rng_bits_of(key, first, n):
    """rng_bits(key, i) for i in first..first+n-1, as a tensor of int64."""
    x = torch.arange(first + 1, first + n + 1) * signed(0x9E3779B97F4A7C15)
    x = x + signed(key)
    x = (x ^ shifted(x, 30)) * signed(0xBF58476D1CE4E5B9)
    x = (x ^ shifted(x, 27)) * signed(0x94D049BB133111EB)
    return x ^ shifted(x, 31)


def rng_unit_of(key, first, n):
    """rng_unit(key, i) of these, as a tensor of float32."""
    return shifted(rng_bits_of(key, first, n), 40).to(torch.float32) * 2.0 ** -24


def epoch_order(seed, n, epoch):
    """The order of n images in an epoch, for all ranks together."""
    key = rng_key(rng_key(seed, SHUFFLE), epoch)
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = rng_below(key, i, i + 1)
        order[i], order[j] = order[j], order[i]
    return order
