# SPDX-License-Identifier: BSD-3-Clause
"""train_torch.py - a small CNN on several processes, by torch's DistributedDataParallel.

    torchrun --nproc_per_node 2 train_torch.py --backend gloo
    torchrun --nproc_per_node 2 train_torch.py --backend coll

The losses are the same.  Without --data the images are random, and their labels follow
from their brightness; with --data FOLDER they are CIFAR-10's (torchvision loads them).
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

if "COLL" not in dist.Backend._plugins:  # an old torch, or libcoll is not installed
    import libcoll.torch  # noqa: F401


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="coll", help="gloo or coll")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--data", help="folder of CIFAR-10")
    return parser.parse_args()


def images(folder):
    if folder:
        from torchvision import datasets, transforms

        return datasets.CIFAR10(folder, transform=transforms.ToTensor())
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(10, (512,), generator=generator)
    pixels = torch.rand(512, 3, 32, 32, generator=generator) + labels.view(-1, 1, 1, 1) / 10
    return TensorDataset(pixels, labels)


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 5 * 5, 10),
    )  # fmt: skip


def train(model, loader, optimizer):
    """One epoch; return the average of the losses of all ranks."""
    total = torch.zeros(2)
    for pixels, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pixels), labels)
        loss.backward()
        optimizer.step()
        total += torch.tensor([loss.item(), 1])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    args = arguments()
    dist.init_process_group(args.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    data = images(args.data)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        begun = time.monotonic()
        loss = train(model, loader, optimizer)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.4f}, {time.monotonic() - begun:.2f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
