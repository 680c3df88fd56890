#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Record what PyTorch makes of coll_train's network, for test_trainer_torch.

    record_torch.py > torch.json

The network, its losses, gradients and optimizers are PyTorch's, in double
precision; what coll_train draws at random (parameters, the order of the
images, what dropout drops) and the images are computed here by the formulas
of trainer/rng.h, model.c, sampler.c, layers_dropout.c and the test.  Parameters
are flat, layer by layer, in coll_train's order; so torch.optim steps over one
flat vector, as its rules are by element.

After the first and the last step of each run come, for each layer's weights
and biases, the gradients and how far they have moved: the norm, N_SIGNS sums with
random signs (the mean square of the differences of such sums is that of the
vectors' difference, so that a few numbers stand for a million), and N_SOME of
the elements.

Recorded with PyTorch 1.13.0 on x86-64; it needs nothing else.
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                os.pardir, os.pardir, "trainer"))
from rng import (DROPOUT, INIT, epoch_order, rng_bits, rng_bits_of, rng_key,
                 rng_unit_of, shifted)

SEED = 42
TEST_KEY = 1000  # of the images and signs of this test
N_SIGNS, N_SOME = 16, 4
N_TRAIN, N_TEST = 195, 40

# (name, fan_in, shape as coll_train stores it), by its index in the model
LAYERS = {
    0: ("conv_image", 9, (32, 1, 3, 3), 32),
    1: ("conv", 32 * 9, (64, 32, 3, 3), 64),
    4: ("dense", 9216, (9216, 128), 128),
    6: ("dense", 128, (128, 10), 10),
}

# optimizer, momentum, rate, dropout, images of the global batch, steps
RUNS = [
    ("sgd", 0.0, 0.05, "off", 6, 10),
    ("sgd", 0.0, 0.05, "on", 6, 10),
    ("sgd", 0.9, 0.01, "off", 6, 10),
    ("sgd", 0.9, 0.01, "on", 6, 10),
    ("adam", 0.9, 0.001, "off", 6, 10),
    ("adam", 0.9, 0.001, "on", 6, 10),
    ("sgd", 0.9, 0.01, "off", 65, 3),  # two chunks, 33 and 32
    ("sgd", 0.9, 0.01, "on", 65, 3),
    ("adam", 0.9, 0.001, "on", 1, 10),
]


# ---- images: test_trainer_torch.c ----


def label_of(i):
    return (7 * i + 3) % 10


def images(first, n):
    """A bright band of two rows tells the class; the rest is noise."""
    pixels = shifted(rng_bits_of(rng_key(TEST_KEY, 0), first * 784, n * 784),
                     58)
    pixels = pixels.reshape(n, 28, 28)
    labels = torch.tensor([label_of(first + i) for i in range(n)])
    for i in range(n):
        row = 4 + 2 * int(labels[i])
        pixels[i, row:row + 2, :] = 255
    pixels = pixels.to(torch.float32) / 255  # as the trainer's unit scale
    return pixels.to(torch.float64).reshape(n, 1, 28, 28), labels


# ---- the network: trainer/model.c ----


def draw_start():
    """Every layer's weights and biases within 1 / sqrt(fan_in), flat."""
    key = rng_key(SEED, INIT)
    parts = []
    for i, (_, fan_in, shape, units) in LAYERS.items():
        limit = 1 / torch.sqrt(torch.tensor(fan_in, dtype=torch.float32))
        n_weights = math.prod(shape)
        for which, n in ((0, n_weights), (1, units)):
            unit = rng_unit_of(rng_key(key, 2 * i + which), 0, n)
            parts.append((limit * (2 * unit - 1)).to(torch.float64))
    return torch.cat(parts)


def split(flat):
    """The tensors of a flat vector: names and (weights, biases) by layer."""
    names, parts, at = [], {}, 0
    for i, (name, _, shape, units) in LAYERS.items():
        n = math.prod(shape)
        parts[i] = flat[at:at + n].reshape(shape), flat[at + n:at + n + units]
        names += [f"{i} {name} weights", f"{i} {name} biases"]
        at += n + units
    assert at == flat.numel() == 1199882
    return names, parts


def mask_of(values, rate, layer, step_key):
    """trainer/layers_dropout.c: one row an image, batch from image 0."""
    n, length = values.shape
    count = torch.arange(length) * 0x9E3779B9 & 0xFFFFFFFF
    rows = []
    for i in range(n):
        bits = rng_bits(rng_key(step_key, layer), i)
        h = count ^ (bits & 0xFFFFFFFF)
        h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        h = (h ^ h >> 16) + (bits >> 32) & 0xFFFFFFFF
        rows.append(h >= int(rate * 2 ** 32))
    return torch.stack(rows).to(torch.float64) / (1 - rate)


def scores_of(flat, pixels, step_key):
    """step_key None: nothing is dropped."""
    _, p = split(flat)
    x = F.relu(F.conv2d(pixels, *p[0]))
    x = F.max_pool2d(F.relu(F.conv2d(x, *p[1])), 2)
    x = x.permute(0, 2, 3, 1).flatten(1)  # height, width, channel
    if step_key is not None:
        x = x * mask_of(x, 0.25, 3, step_key)
    x = F.relu(F.linear(x, p[4][0].T, p[4][1]))
    if step_key is not None:
        x = x * mask_of(x, 0.5, 5, step_key)
    return F.linear(x, p[6][0].T, p[6][1])


# ---- recording ----


def rounded(x):
    return float(f"{float(x):.7g}")


def digest(vector):
    vector = vector.flatten()
    n = vector.numel()
    bits = rng_bits_of(rng_key(TEST_KEY, 1), 0, n)
    sums = [float((vector * (2 * (bits >> j & 1) - 1)).sum())
            for j in range(N_SIGNS)]
    some = [float(vector[k * n // N_SOME]) for k in range(N_SOME)]
    return [rounded(x) for x in [vector.norm()] + sums + some]


def digests(flat):
    names, parts = split(flat.detach())
    vectors = [vector for pair in parts.values() for vector in pair]
    return dict(zip(names, (digest(v) for v in vectors)))


def make_optimizer(flat, opt, momentum, rate):
    if opt == "sgd":
        return torch.optim.SGD([flat], lr=rate, momentum=momentum)
    # Keras's epsilon, as coll_train has it; PyTorch's own is 1e-8
    return torch.optim.Adam([flat], lr=rate, betas=(0.9, 0.999), eps=1e-7)


def record(opt, momentum, rate, dropout, batch, steps):
    start = draw_start()
    flat = torch.nn.Parameter(start.clone())
    optimizer = make_optimizer(flat, opt, momentum, rate)
    pixels, labels = images(0, N_TRAIN)
    order = epoch_order(SEED, batch * steps, 0)
    losses, points = [], []
    for step in range(steps):
        at = order[step * batch:(step + 1) * batch]
        key = rng_key(rng_key(rng_key(SEED, DROPOUT), 0), step)
        scores = scores_of(flat, pixels[at], key if dropout == "on" else None)
        loss = F.cross_entropy(scores, labels[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(rounded(loss))
        if step in (0, steps - 1):
            points.append({"step": step + 1, "gradients": digests(flat.grad),
                           "moved": digests(flat - start)})
    with torch.no_grad():
        pixels, labels = images(N_TRAIN, N_TEST)
        scores = scores_of(flat, pixels, None)
        test = F.cross_entropy(scores, labels)
        right = (scores.argmax(1) == labels).sum()
    return {"opt": opt, "momentum": momentum, "lr": rate, "dropout": dropout,
            "batch": batch, "steps": steps, "losses": losses,
            "test_loss": rounded(test), "test_right": int(right),
            "points": points}


def main():
    out = {"torch": torch.__version__, "start": digests(draw_start()),
           "runs": [record(*run) for run in RUNS]}
    text = json.dumps(out, separators=(",", ":"))
    # a line for each vector
    text = text.replace('],"', '],\n"').replace("},{", "},\n{")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
