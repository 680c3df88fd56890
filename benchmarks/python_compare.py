#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""python_compare.py - torch.distributed with coll beside gloo, in turns within one job.

    collrun -n 2 python3 benchmarks/python_compare.py --json out.json

Each round measures every line once with each backend, one right after the other.  Times are
medians over the rounds, from a barrier to the end on the slowest rank; the ratio is the median
of each round's gloo / coll.  The lines: allreduce, reduce_scatter and all_to_all of --bytes
on tensors; a step of ResNet-18 (examples/python/ddp_resnet18.py) with --batch images by
DistributedDataParallel; and an allreduce of 4 bytes, of torch and of the package libcoll
itself.  Gloo has reduce_scatter in PyTorch 2.x, not in 1.13.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "python"))
import libcoll
import libcoll.torch  # noqa: F401
from ddp_resnet18 import resnet18

BACKENDS = ("coll", "gloo")
SMALL = 200  # calls of 4 bytes that are timed together


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=25 << 20, help="of a tensor (25 MiB)")
    parser.add_argument("--batch", type=int, default=32, help="images of a rank's step (32)")
    parser.add_argument("--width", type=int, default=64, help="channels of ResNet-18 (64)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="write all figures to this file too")
    return parser.parse_args()


# ---- what is measured: each makes a function that does the work of one round ---------


def allreduce(args, group):
    tensor = torch.zeros(args.bytes // 4)  # whose sum stays 0
    return lambda: dist.all_reduce(tensor, group=group)


def reduce_scatter(args, group):
    part = torch.ones(args.bytes // 4 // dist.get_world_size())
    parts = list(torch.ones(len(part) * dist.get_world_size()).chunk(dist.get_world_size()))
    return lambda: dist.reduce_scatter(part, parts, group=group)


def all_to_all(args, group):
    given = torch.ones(args.bytes // 4 // dist.get_world_size() * dist.get_world_size())
    got = torch.empty_like(given)
    return lambda: dist.all_to_all_single(got, given, group=group)


def resnet18_step(args, group):
    torch.manual_seed(0)
    model = DistributedDataParallel(resnet18(args.width), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    images, labels = torch.randn(args.batch, 3, 32, 32), torch.randint(10, (args.batch,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def small_allreduce(args, group):
    tensor = torch.zeros(1)

    def calls():
        for _ in range(SMALL):
            dist.all_reduce(tensor, group=group)

    return calls


def small_package(args, comm):
    array = memoryview(bytearray(4)).cast("f")

    def calls():
        for _ in range(SMALL):
            comm.allreduce(array)

    return calls


# ---- rounds --------------------------------------------------------------------------


def seconds(work, control):
    """Of the slowest rank, from a barrier on."""
    dist.barrier(control)
    begun = time.perf_counter()
    work()
    took = torch.tensor([time.perf_counter() - begun], dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX, control)
    return took.item()


def measure(works, rounds, control):
    """Return the seconds of each work in each round; one more round comes first."""
    times = {name: [] for name in works}
    for number in range(rounds + 1):
        order = list(works) if number % 2 else list(works)[::-1]
        for name in order:
            took = seconds(works[name], control)
            if number:
                times[name].append(took)
    return times


def line(name, times, calls):
    """A row of the table from the seconds of both backends."""
    row = {"name": name, "calls": calls, "seconds": times}
    for backend, values in times.items():
        row[f"{backend}_us"] = statistics.median(values) / calls * 1e6
    if "gloo" in times:
        row["ratio"] = statistics.median(g / c for c, g in zip(times["coll"], times["gloo"]))
    return row


def compare(args):
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    makers = [(f"allreduce {args.bytes} B", allreduce, 1),
              (f"reduce_scatter {args.bytes} B", reduce_scatter, 1),
              (f"all_to_all {args.bytes} B", all_to_all, 1),
              (f"resnet18 step, batch {args.batch}", resnet18_step, 1),
              ("allreduce 4 B", small_allreduce, SMALL)]  # fmt: skip
    for name, make, calls in makers:
        works = {backend: make(args, group) for backend, group in groups.items()}
        yield line(name, measure(works, args.rounds, groups["gloo"]), calls)
    with libcoll.Communicator.from_allgather(dist.get_rank(), dist.get_world_size(),
                                             exchange) as comm:  # fmt: skip
        times = measure({"coll": small_package(args, comm)}, args.rounds, groups["gloo"])
        yield line("allreduce 4 B, the package libcoll", times, SMALL)


def exchange(mine):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    return parts


def about():
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((row.split(":")[1].strip() for row in rows if row.startswith("model name")),
                 platform.machine())  # fmt: skip
    load = os.getloadavg()[0]
    return {"cpu": model, "cores": os.cpu_count(), "load": load, "torch": torch.__version__,
            "ranks": dist.get_world_size(), "threads": torch.get_num_threads(),
            "python": platform.python_version()}  # fmt: skip


def main():
    args = arguments()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    head = about()
    rows = []
    if dist.get_rank() == 0:
        print("# {cpu}, {cores} cores, load before {load:.2f}, {ranks} ranks, one thread "
              "each, PyTorch {torch}".format(**head))  # fmt: skip
        print(f"# {args.rounds} rounds in turns; times in us: medians")
        print(f"{'':36}{'coll':>12}{'gloo':>12}{'gloo/coll':>11}", flush=True)
    for row in compare(args):
        rows.append(row)
        if dist.get_rank() == 0:
            rival = f"{row['gloo_us']:12.1f}{row['ratio']:11.2f}" if "ratio" in row else ""
            print(f"{row['name']:36}{row['coll_us']:12.1f}{rival}", flush=True)
    if args.json and dist.get_rank() == 0:
        Path(args.json).write_text(json.dumps({"machine": head, "rows": rows}, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
