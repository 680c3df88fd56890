#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Record 20 steps of PyTorch's optimizers, schedules and losses with a network of
two dense layers, for test_trainer_rules.

    record_rules.py > rules.json

Optimizers, StepLR, CosineAnnealingLR and the smoothed cross-entropy are PyTorch's,
in double precision; the warm-up, which PyTorch has not, is Horovod's rule.
Parameters and images are drawn by the formulas of trainer/rng.h.  The flags of a
run stand with what they gave, so that the test reads them as the user's.

Recorded with PyTorch 1.13.0 on x86-64; it needs nothing else.
"""
import json
import sys

import torch
import torch.nn.functional as F

from record_torch import SEED, TEST_KEY, label_of
from rng import INIT, rng_key, rng_unit_of

N_IN, N_HIDDEN, N_OUT = 12, 8, 10
BATCH, EPOCH, STEPS = 6, 4, 20  # images, steps, steps

# torch.optim's class and words, smoothing, schedule, ranks, warm-up's steps, and
# the flags that say the same
RUNS = [
    ("SGD", dict(lr=0.5), 0.1, None, 1, 0,
     "--opt sgd --lr 0.5 --momentum 0 --label-smoothing 0.1"),
    ("SGD", dict(lr=0.2, momentum=0.9, nesterov=True, weight_decay=0.01), 0,
     ("step", 2, 0.5), 1, 0,
     "--opt sgd --lr 0.2 --nesterov --weight-decay 0.01 "
     "--lr-schedule step:2,0.5"),
    ("SGD", dict(lr=0.2, momentum=0.8, weight_decay=0.02), 0, ("cosine",), 1, 0,
     "--opt sgd --lr 0.2 --momentum 0.8 --weight-decay 0.02 "
     "--lr-schedule cosine"),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True), 0.2, ("cosine",), 4, 4,
     "--opt sgd --lr 0.05 --nesterov --label-smoothing 0.2 "
     "--lr-schedule cosine --warmup-epochs 1"),
    ("Adam", dict(lr=0.01, eps=1e-7, weight_decay=0.01), 0, ("cosine",), 8, 5,
     "--opt adam --lr 0.01 --weight-decay 0.01 --lr-schedule cosine "
     "--warmup-steps 5"),
    ("Adam", dict(lr=0.02, betas=(0.8, 0.99), eps=1e-3), 0.1,
     ("step", 1, 0.7), 1, 0,
     "--opt adam --lr 0.02 --beta1 0.8 --beta2 0.99 --eps 1e-3 "
     "--label-smoothing 0.1 --lr-schedule step:1,0.7"),
    ("Adagrad", dict(lr=0.1, weight_decay=0.01), 0, None, 1, 0,
     "--opt adagrad --lr 0.1 --weight-decay 0.01"),
    ("Adagrad", dict(lr=0.1, eps=1e-2), 0.3, ("cosine",), 2, 8,
     "--opt adagrad --lr 0.1 --eps 1e-2 --label-smoothing 0.3 "
     "--lr-schedule cosine --warmup-epochs 2"),
]


def drawn(layer, which, n, fan_in):
    limit = 1 / torch.sqrt(torch.tensor(fan_in, dtype=torch.float32))
    unit = rng_unit_of(rng_key(rng_key(SEED, INIT), 2 * layer + which), 0, n)
    return (limit * (2 * unit - 1)).to(torch.float64)


def start():
    """Weights as [in][out], and biases, of both layers."""
    return [drawn(0, 0, N_IN * N_HIDDEN, N_IN).reshape(N_IN, N_HIDDEN),
            drawn(0, 1, N_HIDDEN, N_IN),
            drawn(1, 0, N_HIDDEN * N_OUT, N_HIDDEN).reshape(N_HIDDEN, N_OUT),
            drawn(1, 1, N_OUT, N_HIDDEN)]


def batch_of(step):
    first = step * BATCH
    pixels = rng_unit_of(rng_key(TEST_KEY, 2), first * N_IN, BATCH * N_IN)
    labels = [label_of(i) for i in range(first, first + BATCH)]
    return pixels.to(torch.float64).reshape(BATCH, N_IN), torch.tensor(labels)


def scheduler_of(optimizer, schedule, warm_up):
    """What to call after which steps."""
    if schedule is None:
        return None, STEPS + 1
    if schedule[0] == "step":
        _, every, factor = schedule
        return torch.optim.lr_scheduler.StepLR(optimizer, every, factor), EPOCH
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer,
                                                      STEPS - warm_up), 1


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def record(name, words, smoothing, schedule, ranks, warm_up, flags):
    tensors = [t.requires_grad_() for t in start()]
    optimizer = getattr(torch.optim, name)(tensors, **words)
    set_rate(optimizer, words["lr"] * ranks)
    scheduler, every = scheduler_of(optimizer, schedule, warm_up)
    losses, rates = [], []
    for step in range(STEPS):
        if step < warm_up:
            part = (step + 1) / warm_up
            set_rate(optimizer, words["lr"] * (part * (ranks - 1) + 1))
        pixels, labels = batch_of(step)
        hidden = F.relu(pixels @ tensors[0] + tensors[1])
        loss = F.cross_entropy(hidden @ tensors[2] + tensors[3], labels,
                               label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        losses.append(rounded(loss))
        rates.append(rounded(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        if scheduler and step >= warm_up and (step + 1) % every == 0:
            scheduler.step()
    params = torch.cat([t.detach().flatten() for t in tensors])
    return {"flags": flags.split(), "ranks": ranks, "losses": losses,
            "rates": rates, "params": [rounded(x) for x in params]}


def rounded(x):
    return float(f"{float(x):.9g}")


def main():
    out = {"torch": torch.__version__, "runs": [record(*run) for run in RUNS]}
    text = json.dumps(out, separators=(",", ":"))
    # a line for each list
    sys.stdout.write(text.replace('],"', '],\n"').replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
