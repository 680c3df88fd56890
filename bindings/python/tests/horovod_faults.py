# SPDX-License-Identifier: BSD-3-Clause
"""horovod_faults.py FOLDER [TEST...] - Horovod's variables on two and three ranks, and what
ranks hear of faults; horovod.sh starts it."""

import json
import logging
import os
import sys
import time

import horovod_ranks as ranks
import torch
from forked import equal, main, raises


def settings(name, rank, size):
    """Few bits, small fused messages, a timeline; variables without an effect are named."""
    os.environ.update(HOROVOD_CACHE_CAPACITY="8", HOROVOD_FUSION_THRESHOLD="64",
                      HOROVOD_TIMELINE=f"{name}.json", HOROVOD_AUTOTUNE="1",
                      HOROVOD_CYCLE_TIME="0.5", HOROVOD_LOG_LEVEL="warning")
    said = records()
    hvd = ranks.begin(rank, size)
    ranks.op_orders()
    ranks.op_mismatches()
    ranks.op_join()
    os.environ["HOROVOD_CACHE_CAPACITY"] = "0"
    hvd.shutdown()
    if rank == 0:
        assert "HOROVOD_AUTOTUNE" in said[0] and "CYCLE" not in said[0], said
        with open(f"{name}.json") as file:
            events = json.load(file)
        assert {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "ALLGATHER"} <= {
            event.get("name") for event in events}
    hvd = ranks.begin(rank, size)
    ranks.op_orders()
    hvd.shutdown()


def records():
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("horovod").addHandler(handler)
    return said


def until(condition):
    while not condition():
        time.sleep(0.01)


def await_others(name, rank, size):
    """Rank 1 waits until the others have come here."""
    if rank != 1:
        open(f"{name}.{rank}", "w").close()
    else:
        until(lambda: all(os.path.exists(f"{name}.{r}") for r in range(size) if r != 1))


def fault_stall(name, rank, size):
    """Rank 0 says which rank has not submitted what; then the operation goes on."""
    os.environ.update(HOROVOD_STALL_CHECK_TIME_SECONDS="0.3")
    said = records()
    hvd = ranks.begin(rank, size)
    if rank == 1:
        until(lambda: os.path.exists(name + ".said"))
    handle = hvd.allreduce_async(torch.ones(2), name="late")
    if rank == 0:
        until(lambda: any("Missing ranks:\n1: [allreduce.late]" in s for s in said))
        open(name + ".said", "w").close()
    equal(hvd.synchronize(handle), torch.ones(2))
    hvd.shutdown()


def fault_stall_end(name, rank, size):
    os.environ.update(HOROVOD_STALL_CHECK_TIME_SECONDS="0.2",
                      HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="0.5")
    records()
    hvd = ranks.begin(rank, size)
    raises(hvd.HorovodInternalError, ["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"],
           hvd.allreduce, torch.ones(2), name=f"only on {rank}")
    hvd.shutdown()


def fault_death(name, rank, size):
    """The others are told, also in later calls."""
    hvd = ranks.begin(rank, size)
    hvd.allreduce(torch.ones(1), name="known")
    await_others(name, rank, size)
    if rank == 1:
        os._exit(0)
    for _ in range(2):
        raises(hvd.HorovodInternalError, ["rank 1"], hvd.allreduce, torch.ones(1), name="known")
    raises(hvd.HorovodInternalError, ["rank 1"], hvd.join)
    hvd.shutdown()


def fault_exception(name, rank, size):
    """A program that ends by an exception tells the others why."""
    hvd = ranks.begin(rank, size)
    await_others(name, rank, size)
    if rank == 1:
        sys.last_value = KeyError("no such key")
    else:
        raises(hvd.HorovodInternalError, ["no such key"], hvd.allreduce, torch.ones(1))
    hvd.shutdown()


def fault_shutdown(name, rank, size):
    """A rank leaves while others still wait."""
    hvd = ranks.begin(rank, size)
    if rank != 1:
        raises(hvd.HorovodInternalError, ["shut down"], hvd.allreduce, torch.ones(1))
    hvd.shutdown()
    raises(ValueError, ["hvd.init()"], hvd.rank)
    raises(ValueError, ["hvd.init()"], hvd.allreduce, torch.ones(1))


if __name__ == "__main__":
    faults = [test for name, test in globals().items() if name.startswith("fault_")]
    main([(settings, n) for n in (2, 3)] + [(test, 3) for test in faults])
