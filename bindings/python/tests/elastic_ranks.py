# SPDX-License-Identifier: BSD-3-Clause
"""elastic_ranks.py FOLDER CASE SIZE - train while ranks are killed; elastic.sh starts it.

The only weight becomes the sum of what all ranks have processed, so that it says what has
counted.  At the end there are SIZE ranks, and on each the weight is what it should be.
"""

import os
import signal
import sys
import time

import horovod.torch as hvd
import torch
from torch.utils.data import DataLoader

N_IMAGES, BATCH, EPOCHS = 103, 4, 4
folder, case, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
resets = []


def once(name):
    """Say so to the first process that asks."""
    try:
        os.close(os.open(f"{folder}/{case}.{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def die(name):
    if once(name):
        os.kill(os.getpid(), signal.SIGKILL)


def strike(state, place, number):
    """Do what the case wants at this place of an epoch."""
    here = case, state.epoch, place if number == 3 else ""
    if (here == ("deaths", 0, "before") and hvd.rank() == 1
            or here == ("deaths", 1, "after") and hvd.rank() == 0
            or here == ("alone", 2, "after") and hvd.rank() == 1):
        die(f"epoch{state.epoch}")
    if here == ("alone", 0, "before") and hvd.rank() == 1 and once("raise"):
        raise hvd.elastic.HorovodInternalError("as if something had failed")
    if here == ("alone", 1, "before") and len(resets) == 1:
        state.on_hosts_updated(time.time(), hvd.elastic.HostUpdateResult.removed)
        state.check_host_updates()


def on_reset():
    if case == "deaths" and hvd.rank() == 1 and resets and hvd.size() > resets[-1]:
        die("reset")  # with a newcomer that waits in sync()
    resets.append(hvd.size())


def end_epoch(state):
    assert set(state.seen) == set(range(N_IMAGES)), sorted(state.seen)
    # each division among the ranks repeats at most one image of each
    assert len(state.seen) <= N_IMAGES + 3 * (len(resets) + 9), len(state.seen)
    state.total += sum(state.seen)
    state.seen = []
    state.epoch += 1
    state.sampler.set_epoch(state.epoch)
    state.commit()


@hvd.elastic.run
def train(state):
    while state.epoch < EPOCHS:
        if state.epoch == EPOCHS - 1:  # newcomers have to come before the last epoch
            while hvd.size() < wanted:
                state.check_host_updates()
                time.sleep(0.02)
        for number, images in enumerate(DataLoader(range(N_IMAGES), BATCH, sampler=state.sampler)):
            strike(state, "before", number)
            state.optimizer.zero_grad()
            (-state.model(images.double()[:, None])).sum().backward()
            strike(state, "after", number)
            state.optimizer.step()
            state.seen += hvd.allgather(images, name="images").tolist()
            state.sampler.record_batch(number, BATCH)
            if number % 2:
                state.commit()
        end_epoch(state)


def main():
    torch.set_num_threads(1)
    hvd.init()
    model = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), op=hvd.Sum)
    sampler = hvd.elastic.ElasticSampler(range(N_IMAGES))
    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, seen=[], total=0)
    state.register_reset_callbacks([on_reset])
    train(state)
    weights = hvd.allgather(state.model.weight.detach(), name="weights")
    assert weights.tolist() == [[float(state.total)]] * wanted, (weights, state.total)
    assert case == "deaths" or resets == [2, 2, 1], resets
    print(f"passed with {hvd.size()} ranks, resets {resets}", flush=True)


main()
