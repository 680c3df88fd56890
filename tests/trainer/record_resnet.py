#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Record what PyTorch makes of torchvision's ResNet-18, for
test_trainer_resnet: one pass in training and one after it with the running
statistics, forward and backward, in double precision.

    record_resnet.py > resnet.json

Parameters and images are drawn by the formulas of the test and of trainer/rng.h
(see record_torch.py, whose digests these are).  A shortcut's layers come before
those that it passes by, as in trainer/models.c.

Recorded with PyTorch 1.13.1 on x86-64; it needs nothing else.
"""
import json
import sys

import torch
import torch.nn.functional as F

from record_torch import SEED, TEST_KEY, digest, label_of, rounded
from rng import INIT, rng_key, rng_unit_of

N = 8  # images


class Layers:
    """Hands out parameters in coll_train's order, and keeps them."""

    def __init__(self):
        self.index = 0
        self.at = 0
        self.list = []  # (name, tensor)
        self.made = {}

    def take(self, kind, make):
        """The parameters of the next layer; made in the first pass alone."""
        i = self.index
        self.index += 1
        if i not in self.made:
            self.made[i] = make(i)
            for what, tensor in zip(("weights", "biases"), self.made[i]):
                if tensor is not None:
                    tensor.requires_grad_()
                    self.list.append((f"{i} {kind} {what}", tensor))
        return self.made[i]

    def skip(self):
        self.index += 1


def drawn(i, which, n, limit):
    key = rng_key(rng_key(SEED, INIT), 2 * i + which)
    return (limit * (2 * rng_unit_of(key, 0, n) - 1)).to(torch.float64)


def limit_of(fan_in):
    return 1 / torch.sqrt(torch.tensor(fan_in, dtype=torch.float32))


def conv(net, x, units, kernel, stride):
    n_in = x.shape[1]
    shape = (units, n_in, kernel, kernel)
    fan_in = n_in * kernel * kernel
    weight, _ = net.take("conv", lambda i: (
        drawn(i, 0, units * fan_in, limit_of(fan_in)).reshape(shape), None))
    return F.conv2d(x, weight, stride=stride, padding=kernel // 2)


def norm(net, x, training):
    n = x.shape[1]

    def make(i):
        def unit(k):
            return rng_unit_of(rng_key(TEST_KEY, k + i), 0, n).to(torch.float64)

        net.running[i] = (torch.zeros(n, dtype=torch.float64),
                          torch.ones(n, dtype=torch.float64))
        return 0.5 + unit(100), unit(200) - 0.5

    i = net.index
    weight, bias = net.take("norm", make)
    mean, variance = net.running[i]
    return F.batch_norm(x, mean, variance, weight, bias, training, 0.1, 1e-5)


def block(net, x, units, stride, training):
    """torchvision's BasicBlock"""
    identity = x
    if stride != 1:
        identity = norm(net, conv(net, x, units, 1, stride), training)
    out = F.relu(norm(net, conv(net, x, units, 3, stride), training))
    out = norm(net, conv(net, out, units, 3, 1), training)
    return F.relu(out + identity)


def resnet18(net, x, training):
    net.index = 0
    x = F.relu(norm(net, conv(net, x, 64, 7, 2), training))
    net.skip()
    x = F.max_pool2d(x, 3, 2, 1)
    for units, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = block(net, x, units, stride, training)
        x = block(net, x, units, 1, training)
    net.skip()
    x = F.adaptive_avg_pool2d(x, 1).flatten(1)
    weight, bias = net.take("dense", lambda i: (
        drawn(i, 0, 5120, limit_of(512)).reshape(512, 10),
        drawn(i, 1, 10, limit_of(512))))
    return F.linear(x, weight.T, bias)


def record_pass(net, pixels, labels, training):
    scores = resnet18(net, pixels, training)
    loss = F.cross_entropy(scores, labels)
    gradients = torch.autograd.grad(loss, [t for _, t in net.list])
    return {"loss": rounded(loss),
            "gradients": {name: digest(s.contiguous())
                       for (name, _), s in zip(net.list, gradients)}}


def main():
    net = Layers()
    net.running = {}
    pixels = rng_unit_of(rng_key(TEST_KEY, 3), 0, N * 32 * 32 * 3)
    pixels = pixels.to(torch.float64).reshape(N, 32, 32, 3).permute(0, 3, 1, 2)
    labels = torch.tensor([label_of(i) for i in range(N)])
    training = record_pass(net, pixels, labels, True)
    assert sum(t.numel() for _, t in net.list) == 11181642
    running = {str(i): [digest(t) for t in pair]
               for i, pair in net.running.items()}
    testing = record_pass(net, pixels, labels, False)
    out = {"torch": torch.__version__, "training": training,
           "running": running, "testing": testing}
    text = json.dumps(out, separators=(",", ":"))
    sys.stdout.write(text.replace('],"', '],\n"') + "\n")


main()
