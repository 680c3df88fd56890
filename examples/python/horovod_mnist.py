# SPDX-License-Identifier: BSD-3-Clause
"""horovod_mnist.py - a small CNN that tells digits apart, trained by Horovod's interface.

    horovodrun -np 2 python horovod_mnist.py
    collrun -n 2 python -m libcoll.horovod horovod_mnist.py

Without --data the images are random, each with a bright bar whose place is its label; with
--data FOLDER they are MNIST's (torchvision loads them).
"""

import argparse

import horovod.torch as hvd
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of MNIST")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--lr", type=float, default=0.02, help="of one process")
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as f16")
    parser.add_argument("--use-adasum", action="store_true", help="combine steps by Adasum")
    return parser.parse_args()


def synthetic(n, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (n,), generator=generator)
    pixels = torch.rand(n, 1, 28, 28, generator=generator)
    pixels[torch.arange(n), 0, 2 * labels + 4] += 1
    return TensorDataset(pixels, labels)


def images(folder):
    if not folder:
        return synthetic(1024, 1), synthetic(256, 2)
    from torchvision import datasets, transforms

    return [datasets.MNIST(folder, train=is_train, transform=transforms.ToTensor())
            for is_train in (True, False)]  # fmt: skip


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 4 * 4, 10),
    )  # fmt: skip


def average(value, name):
    return hvd.allreduce(torch.tensor(float(value)), name=name).item()


def train(model, loader, optimizer):
    """One epoch; return the average of the losses of this process."""
    model.train()
    total = 0.0
    for pixels, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(pixels), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(pixels).argmax(1) == labels).sum().item() for pixels, labels in loader)
    return right / len(loader.sampler)


def main():
    args = arguments()
    hvd.init()
    torch.manual_seed(42)
    torch.set_num_threads(1)
    loaders = [
        DataLoader(data, args.batch_size,
                   sampler=DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank()))
        for data in images(args.data)
    ]  # fmt: skip
    model = network()
    # a batch of all processes is larger, and so may the steps be; Adasum needs no larger ones
    lr = args.lr if args.use_adasum else args.lr * hvd.size()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
    )  # fmt: skip
    for epoch in range(args.epochs):
        loaders[0].sampler.set_epoch(epoch)
        loss = average(train(model, loaders[0], optimizer), "average_loss")
        right = average(accuracy(model, loaders[1]), "average_accuracy")
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {100 * right:.1f} %")


if __name__ == "__main__":
    main()
