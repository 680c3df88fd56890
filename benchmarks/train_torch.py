#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""coll_train's job by PyTorch, for benchmarks/train_compare.

    RANK=0 WORLD_SIZE=1 train_torch.py --model cnn --batch 64 --steps 8

The networks are those of trainer/models.c; the images those of --dataset
synthetic, in the order of trainer/sampler.c, computed here by the same formulas
and held in memory as tensors, which is faster than a DataLoader.  Parameters
begin as PyTorch draws them.  Several ranks are DistributedDataParallel over
gloo; they meet by --meet FILE.  Two epochs are trained; the second is timed, from a
barrier to the last rank's end.  Rank 0 prints one line of JSON.

With --begin CHECKPOINT only the next epoch of coll_train's run is trained, from its
parameters and momentum and without dropout; "losses" are those of rank 0's steps.  So
coll_train --resume CHECKPOINT --dropout off has the same losses (tests/gpu/train.sh).

On GPUs (--device cuda) a rank takes that of its number, modulo those that there are; ranks
with GPUs of their own meet by nccl.  The images lie in the GPU's memory, and losses are
read once an epoch.
"""
import argparse
import json
import os
import resource
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                os.pardir, "trainer"))
import train_checkpoint
from rng import SYNTHETIC, epoch_order, rng_below, rng_key, rng_unit_of

SEED = 42
CELLS, SHIFT, NOISE = 7, 2, np.float32(0.6)  # trainer/synthetic.c

# ---- images ----


def rng_units(key, first, n):
    return rng_unit_of(key, first, n).numpy()


def pattern(key, height, width):
    cells = rng_units(key, 0, (CELLS + 1) ** 2).reshape(CELLS + 1, -1)
    v = np.arange(height, dtype=np.float32) * CELLS / np.float32(height)
    u = np.arange(width, dtype=np.float32) * CELLS / np.float32(width)
    i, j = v.astype(int), u.astype(int)
    v, u = (v - i).astype(np.float32)[:, None], (u - j).astype(np.float32)
    top = cells[i][:, j] * (1 - u) + cells[i][:, j + 1] * u
    low = cells[i + 1][:, j] * (1 - u) + cells[i + 1][:, j + 1] * u
    return top * (1 - v) + low * v


def synthetic_images(n, channels, height, width):
    key = rng_key(SEED, SYNTHETIC)
    rim = 2 * SHIFT
    keys = [[rng_key(rng_key(key, k), c) if c else rng_key(key, k)
             for c in range(channels)] for k in range(10)]
    patterns = [np.stack([pattern(c, height + rim, width + rim) for c in k])
                for k in keys]
    images = np.empty((n, channels, height, width), np.uint8)
    for i in range(n):
        mine = rng_key(key, 10 + i)
        dy, dx = (rng_below(mine, k, rim + 1) for k in (0, 1))
        light = np.float32(0.6) + np.float32(0.4) * rng_units(mine, 2, 1)[0]
        noise = rng_units(mine, 3, channels * height * width) - np.float32(0.5)
        seen = patterns[i % 10][:, dy:dy + height, dx:dx + width]
        v = light * seen + NOISE * noise.reshape(seen.shape)
        images[i] = (np.clip(v, 0, 1) * 255).astype(np.uint8)
    return images, np.arange(n) % 10


# ---- networks ----


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def net():
    return nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(10, 20, 5), nn.Dropout2d(0.5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(50, 10))


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 192, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(1024, 4096), nn.ReLU(),
        nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(),
        nn.Linear(4096, 10))


class Basic(nn.Module):
    """Two convolutions beside what goes in: He et al., CVPR 2016."""

    def __init__(self, inputs, n, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n),
            nn.ReLU(inplace=True),
            nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n))
        self.beside = nn.Sequential() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, n, 1, stride, bias=False), nn.BatchNorm2d(n))

    def forward(self, x):
        return F.relu(self.body(x) + self.beside(x), inplace=True)


def resnet18(stem):
    blocks = [Basic(n // 2 if i == 0 and n > 64 else n, n,
                    2 if i == 0 and n > 64 else 1)
              for n in (64, 128, 256, 512) for i in range(2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(512, 10))


def norm_relu():
    return [nn.BatchNorm2d(64), nn.ReLU(inplace=True)]


def resnet18_torchvision():
    return resnet18([nn.Conv2d(3, 64, 7, 2, 3, bias=False), *norm_relu(),
                     nn.MaxPool2d(3, 2, 1)])


def resnet18_cifar():
    return resnet18([nn.Conv2d(3, 64, 3, 1, 1, bias=False), *norm_relu()])


MODELS = {  # and the shape of an image
    "cnn": (cnn, (1, 28, 28)),
    "net": (net, (1, 28, 28)),
    "alexnet": (alexnet, (3, 32, 32)),
    "resnet18": (resnet18_torchvision, (3, 32, 32)),
    "resnet18-cifar": (resnet18_cifar, (3, 32, 32)),
}

# ---- training ----


def make_optimizer(args, model):
    if args.opt == "adam":
        return torch.optim.Adam(model.parameters(), args.lr)
    return torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)


def train_epoch(args, model, optimizer, images, labels, epoch):
    """Return the losses of this rank's steps, and the seconds."""
    losses, step = [], args.batch * args.size
    order = torch.tensor(epoch_order(SEED, len(labels), epoch)).to(images.device)
    is_cuda = args.device == "cuda"
    model.train()
    if args.size > 1:
        dist.barrier()
    if is_cuda:
        torch.cuda.synchronize()
    start = time.monotonic()
    for s in range(args.steps):
        at = s * step + args.rank * args.batch
        index = order[at:at + args.batch]
        x = images[index].to(torch.float32) / 255
        if args.tuned:
            x = x.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(args.device, torch.bfloat16,
                            enabled=args.precision == "bf16"):
            loss = F.cross_entropy(model(x), labels[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach() if is_cuda else loss.item())
    if is_cuda:
        torch.cuda.synchronize()
    if args.size > 1:
        dist.barrier()
    seconds = time.monotonic() - start
    return [float(loss) for loss in losses], seconds


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--version", action="version", version=torch.__version__)
    p.add_argument("--model", choices=list(MODELS), default="cnn")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--opt", choices=["adam", "sgd"], default="adam")
    p.add_argument("--lr", type=float, default=0.001)
    p.add_argument("--tuned", action="store_true",
                   help="channels last; on GPUs compiled, too")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    p.add_argument("--begin", metavar="CHECKPOINT",
                   help="of coll_train; it needs --opt sgd")
    p.add_argument("--meet", help="a new file's name, for several ranks")
    args = p.parse_args()
    args.rank = int(os.environ.get("RANK", 0))
    args.size = int(os.environ.get("WORLD_SIZE", 1))
    args.local_rank = int(os.environ.get("LOCAL_RANK", args.rank))
    return args


def prepare_cuda(args):
    """Choose this rank's GPU.  Return the name of the backend for its ranks."""
    n = torch.cuda.device_count()
    torch.cuda.set_device(args.local_rank % n)
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.benchmark = args.tuned
    return "nccl" if n >= args.size else "gloo"


def epochs_of(args, model, optimizer):
    """Return the numbers of the epochs to train."""
    if not args.begin:
        return range(2)
    epoch = train_checkpoint.begin(args.begin, model, optimizer)
    return range(epoch, epoch + 1)


def main():
    args = parse()
    make, shape = MODELS[args.model]
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    backend = prepare_cuda(args) if args.device == "cuda" else "gloo"
    model = make().to(args.device)
    if args.begin:
        for dropout in model.modules():
            if isinstance(dropout, (nn.Dropout, nn.Dropout2d)):
                dropout.p = 0
    n_params = sum(p.numel() for p in model.parameters())
    if args.tuned:
        model = model.to(memory_format=torch.channels_last)
    images, labels = synthetic_images(args.steps * args.batch * args.size,
                                      *shape)
    images = torch.from_numpy(images).to(args.device)
    labels = torch.from_numpy(labels).to(args.device)
    if args.size > 1:
        dist.init_process_group(backend, init_method="file://" + args.meet,
                                rank=args.rank, world_size=args.size)
        model = nn.parallel.DistributedDataParallel(model)
    if args.tuned and args.device == "cuda":
        model = torch.compile(model)
    optimizer = make_optimizer(args, model)
    for epoch in epochs_of(args, model, optimizer):
        losses, seconds = train_epoch(args, model, optimizer, images, labels,
                                      epoch)
    if args.rank == 0:
        print(json.dumps({
            "images_per_s": len(labels) / seconds,
            "loss": sum(losses) / args.steps,
            "losses": losses,
            "params": n_params,
            "max_rss_mib":
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }))
    if args.size > 1:
        dist.destroy_process_group()


main()
