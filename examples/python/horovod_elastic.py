# SPDX-License-Identifier: BSD-3-Clause
"""horovod_elastic.py - horovod_mnist.py's network, trained on while ranks die and come.

    collrun -n 4 --min-np 1 --max-restarts 8 python -m libcoll.horovod horovod_elastic.py

Kill a rank (kill -9): the others go on from the last commit, and a new one joins them.
Without --data the images are random; with --data FOLDER they are MNIST's.
"""

import argparse

import horovod.torch as hvd
import torch
from horovod_mnist import accuracy, average, images, network
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of MNIST")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--lr", type=float, default=0.02, help="of one process")
    parser.add_argument("--batches-per-commit", type=int, default=4)
    return parser.parse_args()


def step(state, pixels, labels):
    state.optimizer.zero_grad()
    cross_entropy(state.model(pixels), labels).backward()
    state.optimizer.step()


@hvd.elastic.run
def train(state, training, test, args):
    while state.epoch < args.epochs:
        state.model.train()
        loader = DataLoader(training, args.batch_size, sampler=state.sampler)
        for number, (pixels, labels) in enumerate(loader):
            step(state, pixels, labels)
            state.sampler.record_batch(number, args.batch_size)
            if (number + 1) % args.batches_per_commit == 0:
                state.commit()
        sampler = torch.utils.data.DistributedSampler(test, hvd.size(), hvd.rank())
        right = accuracy(state.model, DataLoader(test, args.batch_size, sampler=sampler))
        right = average(right, "average_accuracy")
        if hvd.rank() == 0:
            print(f"epoch {state.epoch}: {hvd.size()} ranks, accuracy {100 * right:.1f} %",
                  flush=True)
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()


def main():
    args = arguments()
    hvd.init()
    torch.manual_seed(42)
    torch.set_num_threads(1)
    training, test = images(args.data)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())

    def adjust():
        for group in optimizer.param_groups:
            group["lr"] = args.lr * hvd.size()

    sampler = hvd.elastic.ElasticSampler(training)
    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)
    state.register_reset_callbacks([adjust])
    train(state, training, test, args)


if __name__ == "__main__":
    main()
