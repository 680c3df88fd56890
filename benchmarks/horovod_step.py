#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""horovod_step.py - what a step of Horovod with many small tensors costs, part by part.

    OMP_NUM_THREADS=1 collrun -n 2 python3 benchmarks/horovod_step.py

Each step submits the same tensors in the same order and waits for all of them.  The parts, one
after the other: `submit`, the calls of allreduce_async_(); `agree`, from the last of them until
all ranks have agreed that every tensor is ready; `reduce`, the fused reduction, with the copies
into one buffer and back; `return`, until the last synchronize() has returned.  Times are of
rank 0, in microseconds a step.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("HOROVOD_CYCLE_TIME", "1000")  # no cycle before someone waits

import torch

import libcoll.horovod.torch as hvd

PARTS = ("submit", "agree", "reduce", "return")
UNTIMED = 10  # steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", type=int, default=160)
    parser.add_argument("--length", type=int, default=100, help="f32 of a tensor (100)")
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    hvd.init()
    coordinator = hvd.global_process_set._coordinator
    carry_out, begun_and_ended = coordinator._carry_out, []

    def timed(comm, batch):
        begun = time.perf_counter()
        carry_out(comm, batch)
        begun_and_ended[:] = begun, time.perf_counter()

    coordinator._carry_out = timed
    tensors = {f"layer {n}": torch.zeros(args.length) for n in range(args.tensors)}
    steps = []
    for _ in range(UNTIMED + args.steps):
        hvd.barrier()
        times = [time.perf_counter()]
        handles = [hvd.allreduce_async_(t, op=hvd.Sum, name=n) for n, t in tensors.items()]
        times.append(time.perf_counter())
        for handle in handles:
            hvd.synchronize(handle)
        steps.append([*times, *begun_and_ended, time.perf_counter()])
    if hvd.rank() == 0:
        print(f"# {args.tensors} tensors of {args.length} f32, {hvd.size()} ranks, "
              f"torch {torch.__version__}, {args.steps} steps")
        print(f"{'part':<8}{'median':>10}{'p10':>10}{'p90':>10}   us")
        rows = [[b - a for a, b in zip(s, s[1:])] + [s[-1] - s[0]] for s in steps[UNTIMED:]]
        for part, column in zip((*PARTS, "step"), zip(*rows)):
            tenths = [t * 1e6 for t in statistics.quantiles(column, n=10)]
            print(f"{part:<8}{tenths[4]:>10.0f}{tenths[0]:>10.0f}{tenths[8]:>10.0f}")
    hvd.shutdown()


if __name__ == "__main__":
    main()
