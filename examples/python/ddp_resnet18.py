# SPDX-License-Identifier: BSD-3-Clause
"""ddp_resnet18.py - ResNet-18 on CIFAR-10 by torch's DistributedDataParallel.

    torchrun --nproc_per_node 2 ddp_resnet18.py --backend gloo
    torchrun --nproc_per_node 2 ddp_resnet18.py --backend coll
    collrun -n 2 python3 ddp_resnet18.py --backend coll --hook fp16

Only the name of the backend differs, and two ranks get the same losses, bit by bit.  With
--data FOLDER the images are those of CIFAR-10's binary version (data_batch_1.bin and so on,
or .gz); otherwise they are random, and their labels follow from their brightness.
"""

import argparse
import gzip
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

if "COLL" not in dist.Backend._plugins:  # an old torch, or libcoll is not installed
    import libcoll.torch  # noqa: F401

HOOKS = {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}
RECORD = 1 + 3 * 32 * 32  # bytes: the label, and three planes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="coll", help="gloo or coll")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="images of a rank's step")
    parser.add_argument("--steps", type=int, help="of an epoch, at most")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=64, help="channels of the first layers")
    parser.add_argument("--hook", choices=HOOKS, help="send gradients in 16 bits")
    parser.add_argument("--data", type=Path, help="folder of CIFAR-10's binary version")
    return parser.parse_args()


# ---- the images ------------------------------------------------------------------


def records(file):
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rb") as stream:
        return torch.frombuffer(bytearray(stream.read()), dtype=torch.uint8).view(-1, RECORD)


def cifar10(folder):
    files = sorted(folder.glob("data_batch_*.bin*"))
    if not files:
        raise SystemExit(f"{folder} has no data_batch_*.bin: is it CIFAR-10's binary version?")
    rows = torch.cat([records(file) for file in files])
    images = rows[:, 1:].view(-1, 3, 32, 32).float() / 255
    return TensorDataset((images - 0.47) / 0.25, rows[:, 0].long())


def random_images():
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(10, (1024,), generator=generator)
    images = torch.randn(1024, 3, 32, 32, generator=generator)
    return TensorDataset(images + labels.view(-1, 1, 1, 1) / 5 - 1, labels)


# ---- the network -----------------------------------------------------------------


def convolution(inputs, outputs, size, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride)
        self.second = convolution(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.beside = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.beside(x))


def resnet18(width):
    """The layers of torchvision's, for 10 classes."""
    layers = [convolution(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for outputs in (width, 2 * width, 4 * width, 8 * width):
        stride = 1 if outputs == inputs else 2
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


# ---- training --------------------------------------------------------------------


def train(model, loader, optimizer, steps):
    """One epoch; return the loss and the accuracy over the images of all ranks."""
    total = torch.zeros(3, dtype=torch.float64)
    for step, (images, labels) in enumerate(loader):
        if step == steps:
            break
        optimizer.zero_grad()
        output = model(images)
        loss = functional.cross_entropy(output, labels)
        loss.backward()
        optimizer.step()
        n_right = (output.argmax(1) == labels).sum().item()
        total += torch.tensor([loss.item() * len(labels), n_right, len(labels)])
    dist.all_reduce(total)
    return (total[0] / total[2]).item(), (total[1] / total[2]).item()


def main():
    args = arguments()
    dist.init_process_group(args.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(resnet18(args.width))
    if args.hook:
        model.register_comm_hook(None, HOOKS[args.hook])
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=5e-4)
    images = cifar10(args.data) if args.data else random_images()
    sampler = DistributedSampler(images)
    loader = DataLoader(images, args.batch, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        begun = time.monotonic()
        loss, accuracy = train(model, loader, optimizer, args.steps)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.6f}, accuracy {accuracy:.2%}, "
                  f"{time.monotonic() - begun:.2f} s")  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
