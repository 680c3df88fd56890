# SPDX-License-Identifier: BSD-3-Clause
"""The processes: init() and shutdown(), their numbers, and sets of them."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from ..comm import Communicator
from ..errors import Error
from ._carry import Carrier
from ._coordinator import FOREVER, Coordinator, Entry, HorovodInternalError, Settings
from ._coordinator import Signature, exchange, log
from ._timeline import Timeline

_HONOURED = """CYCLE_TIME FUSION_THRESHOLD CACHE_CAPACITY STALL_CHECK_TIME_SECONDS
    STALL_CHECK_DISABLE STALL_SHUTDOWN_TIME_SECONDS LOG_LEVEL"""
_LAUNCHER_S = """RANK SIZE LOCAL_RANK LOCAL_SIZE CROSS_RANK CROSS_SIZE HOSTNAME
    GLOO_RENDEZVOUS_ADDR GLOO_RENDEZVOUS_PORT GLOO_IFACE CONTROLLER CPU_OPERATIONS SECRET_KEY"""
_LEVELS = {"trace": logging.DEBUG, "fatal": logging.CRITICAL}

_timeline = Timeline()


class ProcessSet:
    """Some of the processes, given by their ranks."""

    def __init__(self, ranks: Sequence[int]) -> None:
        self.ranks: list[int] | None = sorted(ranks)
        self.process_set_id: int | None = None
        self._coordinator: Coordinator | None = None
        self._numbers = count()  # of operations without a name

    def _members(self) -> list[int]:
        if self.process_set_id is None:
            if self is global_process_set:
                raise ValueError("Horovod has not been initialized; use hvd.init().")
            raise ValueError("the process set has not been added, or has been removed")
        return self.ranks or []

    def _coordinator_of_rank(self) -> Coordinator:
        members = self._members()
        if self._coordinator is None:
            raise ValueError(f"rank {rank()} is not in the process set {members}")
        return self._coordinator

    def included(self) -> bool:
        return rank() in self._members()

    def rank(self) -> int:
        """Return the place of this process in the set."""
        return self._coordinator_of_rank().comm.rank

    def size(self) -> int:
        return len(self._members())

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
_sets: dict[int, ProcessSet] = {}  # that have been added, by their ids
_hosts: list[int] = []  # of each rank


def _first(comm: Any) -> Communicator:
    """Join the other processes."""
    if comm is None or isinstance(comm, (list, tuple)):
        first = Communicator.from_env()
        if comm and sorted(comm) != list(range(first.size)):
            raise ValueError("init(comm) takes all ranks: use process sets for some of them")
        return first
    return Communicator.from_allgather(comm.Get_rank(), comm.Get_size(), comm.allgather)


def _copy(first: Communicator, **config: Any) -> Communicator:
    """Make a communicator of the same ranks, in another configuration."""

    def allgather(given: bytes) -> list[bytes]:
        gathered = bytearray(first.size * len(given))
        first.allgather(given, gathered)
        return [bytes(gathered)]

    return Communicator.from_allgather(first.rank, first.size, allgather, **config)


def _begin(world: Communicator) -> None:
    with contextlib.ExitStack() as stack:
        stack.push(world)
        gathered = exchange(world, (Settings.from_env(), world.host))
        stack.pop_all()
    settings: Settings = gathered[0][0]
    _hosts[:] = [host for _, host in gathered]
    carrier = Carrier(settings.fusion)
    global_process_set.ranks, global_process_set.process_set_id = list(range(world.size)), 0
    global_process_set._coordinator = Coordinator(world, settings, carrier, _timeline.note)
    global_process_set._numbers = count()


def _meet(first: Communicator) -> None:
    """Begin on all ranks of `first`, or on none of them.  Operations have no deadline then."""
    failure: Error | None = None
    try:
        _begin(_copy(first, timeout=FOREVER))
    except Error as error:
        failure = error
        first.abort(str(error))
    have_begun = first.agree(failure is None)
    if not have_begun:
        _end([global_process_set], "a rank died while the ranks began")
    with contextlib.suppress(Error):
        first.close()
    if not have_begun:
        raise HorovodInternalError(str(failure or "another rank has not begun")) from failure


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Join the other processes; comm may be a communicator of mpi4py."""
    if is_initialized():
        return
    level = os.environ.get("HOROVOD_LOG_LEVEL", "").lower()
    if level:
        log.setLevel(_LEVELS.get(level, level.upper()))
    # the library would write its own timeline, without the names of tensors
    timeline = os.environ.pop("HOROVOD_TIMELINE", "")
    _meet(_first(comm))
    atexit.register(shutdown)
    if rank() == 0:
        known = {"HOROVOD_" + name for name in (_HONOURED + " " + _LAUNCHER_S).split()}
        others = sorted(name for name in os.environ.keys() - known if name[:8] == "HOROVOD_")
        if others:
            log.warning("libcoll needs no %s: set, without an effect", ", ".join(others))
        if timeline:
            start_timeline(timeline)
    for process_set in process_sets if isinstance(process_sets, (list, tuple)) else ():
        add_process_set(process_set)


def newcomers() -> int:
    """Return how many processes wait at the launcher to join."""
    with contextlib.suppress(Error):
        return global_process_set._coordinator_of_rank().comm.waiting()
    return 0


def _grown(rest: Communicator, may_grow: bool) -> Communicator:
    """Return a communicator of these ranks and of newcomers, with the usual deadline.

    All of them get it, or all an error.
    """
    n = array("i", [rest.waiting() if may_grow and rest.rank == 0 else 0])
    rest.broadcast(n)
    first = _copy(rest)
    if not n[0]:
        return first
    with first:
        grown = first.grow(n[0])
        with contextlib.suppress(Error):  # all have the new one: it knows who has died since
            first.close()
    return grown


def reset(why: str | None = None) -> None:
    """Go on with the processes that live, and with newcomers; why: after which failure.

    All of them call this.  Whatever dies meanwhile, all of them take each step or none: so
    all begin with the same ranks.  Process sets end.
    """
    _end([*_sets.values()], why)
    _sets.clear()
    coordinator = global_process_set._coordinator_of_rank()
    coordinator.stop(why)
    rest, may_grow = coordinator.end(), True
    global_process_set._coordinator = global_process_set.process_set_id = None
    while not is_initialized():
        former, rest, first = rest, rest.shrink(abort=True), None
        former.close()
        try:
            first = _grown(rest, may_grow)
        except Error as error:
            log.warning("the ranks have to meet again: %s", error)
            rest.abort(str(error))
        may_grow = False
        if first:
            with contextlib.suppress(HorovodInternalError):
                _meet(first)
    with contextlib.suppress(Error):
        rest.close()


def shutdown() -> None:
    """Leave the other processes, when all of them do; after an exception, at once."""
    atexit.unregister(shutdown)
    failure = getattr(sys, "last_value", None)
    why = None if failure is None else f"{type(failure).__name__}: {failure}"
    _end([*_sets.values(), global_process_set], why)
    _sets.clear()
    stop_timeline()


def _end(process_sets: list[ProcessSet], why: str | None = None) -> None:
    coordinators = [s._coordinator for s in process_sets if s._coordinator]
    for coordinator in coordinators:
        coordinator.stop(why)
    for coordinator in coordinators:
        coordinator.close()
    for process_set in process_sets:
        process_set._coordinator = process_set.process_set_id = None


def is_initialized() -> bool:
    return global_process_set.process_set_id is not None


def _number(name: str) -> Callable[[], int]:
    def number() -> int:
        return int(getattr(global_process_set._coordinator_of_rank().comm, name))

    return number


rank, size, local_rank, local_size = map(_number, ("rank", "size", "local_rank", "local_size"))
cross_rank, cross_size = map(_number, ("host", "n_hosts"))


def is_homogeneous() -> bool:
    """Say whether all hosts have the same number of processes."""
    return len({_hosts.count(host) for host in _hosts}) == 1


def _no_such_library() -> bool:
    """Horovod is built over one of these; libcoll needs none of them."""
    return False


mpi_built = mpi_enabled = mpi_threads_supported = gloo_built = gloo_enabled = _no_such_library
nccl_built = ddl_built = ccl_built = cuda_built = rocm_built = _no_such_library


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Write what the operations do to a file, on rank 0."""
    if rank() == 0:
        _timeline.start(file_path)


def stop_timeline() -> None:
    _timeline.stop()


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Make a set of some ranks; all processes call this, in the same order."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    world = global_process_set._coordinator_of_rank()
    ranks = process_set.ranks
    if not ranks or ranks[0] < 0 or ranks[-1] >= size() or len(set(ranks)) < len(ranks):
        raise ValueError(f"a process set takes some of the ranks 0 to {size() - 1}, not {ranks}")
    id = max(_sets, default=0) + 1
    signature = Signature(f"process_set.{id}", "split", shapes=(tuple(ranks),))
    comm = world.wait(world.submit(Entry(signature, extra=ranks)))
    process_set.process_set_id = id
    if comm is not None:
        arguments = world.settings, world._carry_out, world._watch
        process_set._coordinator = Coordinator(comm, *arguments)
    _sets[id] = process_set
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """End a set; all processes call this.  The set of all of them stays."""
    if _sets.pop(process_set.process_set_id or 0, None) is None:
        return False
    _end([process_set])
    process_set.ranks = None
    return True
