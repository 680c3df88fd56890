# SPDX-License-Identifier: BSD-3-Clause
"""deepspeed_cnn.py - the CNN of DeepSpeed's CIFAR-10 tutorial, on CPUs.

    DS_ACCELERATOR=cpu collrun -n 2 python3 deepspeed_cnn.py --backend gloo --stage 2
    DS_ACCELERATOR=cpu collrun -n 2 python3 deepspeed_cnn.py --backend coll --stage 2

Only the name of the backend differs, and two ranks get the same losses, bit by bit.  Images
are random, and their labels follow from their brightness.
"""

import argparse

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

if "COLL" not in dist.Backend._plugins:  # libcoll is not installed
    import libcoll.torch  # noqa: F401


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="coll", help="gloo or coll")
    parser.add_argument("--stage", type=int, default=1, help="of ZeRO: 0 to 3")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="images of a rank's step")
    parser.add_argument("--local_rank", help="of DeepSpeed's launcher")
    return parser.parse_args()


def network():
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def images(batch, generator):
    labels = torch.randint(10, (batch,), generator=generator)
    pixels = torch.randn(batch, 3, 32, 32, generator=generator)
    return pixels + labels.view(-1, 1, 1, 1) / 5 - 1, labels


def main():
    args = arguments()
    deepspeed.init_distributed(dist_backend=args.backend, verbose=False)
    torch.manual_seed(0)
    model = network()
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": args.batch,
            "optimizer": {"type": "Adam", "params": {"lr": 0.001, "torch_adam": True}},
            "zero_optimization": {"stage": args.stage},
        },
    )
    generator = torch.Generator().manual_seed(1 + dist.get_rank())
    for step in range(args.steps):
        pixels, labels = images(args.batch, generator)
        loss = nn.functional.cross_entropy(engine(pixels), labels)
        engine.backward(loss)
        engine.step()
        average = loss.detach().clone()
        dist.all_reduce(average)
        if dist.get_rank() == 0:
            print(f"step {step}: loss {average.item() / dist.get_world_size():.7f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
