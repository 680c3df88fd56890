# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: groups of ranks, and how they are made."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Iterable, Sequence
from ctypes import POINTER, byref, c_char, c_int, c_size_t, c_uint64, c_void_p
from itertools import count
from operator import attrgetter
from typing import Any, Callable, NamedTuple, cast

from . import _interrupt, _notices
from ._buffers import describe
from ._calls import Call, Operations
from ._interrupt import aborting, waits
from ._lib import ORDERS, lib, sized, struct
from ._types import SIZES
from .errors import Error, InvalidError, check, error_of
from .process import id_of
from .request import Request, args_of, note

_CALLS = {
    name: (getattr(lib, "coll_" + name), attrgetter(*order.split()))
    for name, order in ORDERS.items()
}

_Config = struct("size:n timeout:d reproducible:i deferred:i progress_thread:i")
_Oob = struct("size:n rank:i nranks:i allgather:p arg:p")
_PlanInfo = struct("size:n algorithm:a32 seconds:d n_steps:n tmp_bytes:n")
_MEMORY = ("plans", "scratch", "shared", "pinned", "device", "mapped")
_MemStats = struct("size:n " + " ".join(name + ":n" for name in _MEMORY))
_ALLGATHER = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_char), c_void_p, c_size_t)


class PlanInfo(NamedTuple):
    """How the library carries out an operation on this rank."""

    algorithm: str
    seconds: float  # predicted
    n_steps: int
    tmp_bytes: int


class _Life:
    """A communicator of the library, its requests, and those of them that run."""

    def __init__(self, handle: int | None) -> None:
        self.handle = handle
        self.requests: weakref.WeakSet[Request] = weakref.WeakSet()
        self.running: set[Request] = set()
        self.is_replaced = False  # by a communicator of the ranks that live

    def end(self) -> int:
        for request in list(self.requests):
            _notices.unwatch(request._handle)
            if lib.coll_test(request._handle) != 1:
                lib.coll_request_destroy(request._handle)
                request._handle = None
        with aborting:
            handle, self.handle = self.handle, None
        status: int = lib.coll_comm_destroy(handle)
        self.running.clear()
        return 0 if self.is_replaced else status

    def end_late(self) -> None:
        """End what nobody closed; after an exception that nobody caught, tell the others."""
        failure = getattr(sys, "last_value", None)
        if failure is not None:
            self.abort(failure)
        self.end()

    def abort(self, failure: BaseException | str) -> int:
        if isinstance(failure, BaseException):
            failure = f"{type(failure).__name__}: {failure}"
        with aborting:
            status: int = lib.coll_comm_abort(self.handle, failure.encode())
        return status


class View(Operations):
    """The operations of a communicator, to be started, prepared or asked about."""

    def __init__(self, comm: Communicator, make: Callable[..., Any], **options: Any) -> None:
        self._comm, self._make, self._options = comm, make, options
        self.rank, self.size = comm.rank, comm.size

    def __call__(
        self, algo: str | None = None, background: bool = False, **more: float
    ) -> View:
        """Return this view with an algorithm, or with a thread that moves requests on.

        prescale=0.5 multiplies this rank's input of a sum or average of floats by 0.5, and
        postscale=0.5 the result.  any_order=True is for requests that ranks may start in
        different orders.  user_tag=7 is shown with the call in errors and timelines.
        """
        return View(self._comm, self._make, algo=algo, background=background, **more)

    def _do(self, call: Call) -> Any:
        return self._make(self._comm, call, args_of(call, **self._options))


def _started(comm: Communicator, call: Call, args: Any) -> Request:
    return Request(comm, call, args).start()


def _plan(comm: Communicator, call: Call, args: Any) -> PlanInfo:
    info = sized(_PlanInfo)
    check(lib.coll_plan_query(byref(args), comm._life.handle, byref(info)))
    return PlanInfo(info.algorithm.decode(), info.seconds, info.n_steps, info.tmp_bytes)


def _candidates(comm: Communicator, call: Call, args: Any) -> dict[str, float]:
    _plan(comm, call, args)  # says what is wrong with the arguments
    info, found, where = sized(_PlanInfo), {}, (byref(args), comm._life.handle)
    for index in count():
        if lib.coll_plan_candidate(*where, index, byref(info)):
            break
        found[info.algorithm.decode()] = info.seconds
    return found


class Communicator(Operations):
    """A group of ranks.  One thread at a time may use it; others may call abort().

    The operations block.  Those of the views do not: `start` returns a Request that runs,
    `prepare` one to be started many times, `plan` a PlanInfo, and `candidates` the
    predicted seconds of each algorithm.
    """

    def __init__(self, handle: int | None) -> None:
        """Take a communicator that the class methods have made."""
        _interrupt.prepare()
        self._life = _Life(handle)
        self._finalizer = weakref.finalize(self, self._life.end_late)
        self.rank: int = lib.coll_comm_rank(handle)
        self.size: int = lib.coll_comm_size(handle)
        self.local_rank: int = lib.coll_comm_local_rank(handle)
        self.local_size: int = lib.coll_comm_local_size(handle)
        self.host: int = lib.coll_comm_host(handle)
        self.n_hosts: int = lib.coll_comm_n_hosts(handle)
        self.transports: list[str] = lib.coll_comm_transports(handle).decode().split(",")

    @classmethod
    def _make(cls, config: dict[str, Any], function: Any, *arguments: Any) -> Communicator:
        handle = c_void_p()
        check(function(byref(handle), *arguments, byref(sized(_Config, **config))))
        return cls(handle.value)

    @classmethod
    def from_env(cls, **config: Any) -> Communicator:
        """Join the group that the launcher describes, or be a single rank without one.

        config: timeout (seconds), reproducible, deferred and progress_thread, as in
        struct coll_config.
        """
        return cls._make(config, lib.coll_comm_create_env)

    @classmethod
    def from_id(cls, id: bytes, rank: int, size: int, **config: Any) -> Communicator:
        """Join the group of an id, which unique_id() has made in the process of rank 0."""
        return cls._make(config, lib.coll_comm_create, size, id_of(id), rank)

    @classmethod
    def from_handles(
        cls, handles: Sequence[bytes], rank: int, uuid: int, **config: Any
    ) -> Communicator:
        """Form a group of the processes with these handles, of which handle() gives one each.

        rank is the place of this process's own.  uuid names the group; each serves once.
        """
        joined = b"".join(id_of(h, "a handle of handle()") for h in handles)
        create, size = lib.coll_comm_create_handles, len(handles)
        return cls._make(config, create, size, joined, rank, uuid)

    @classmethod
    def from_allgather(
        cls, rank: int, size: int, allgather: Callable[[bytes], Iterable[bytes]], **config: Any
    ) -> Communicator:
        """Join by an exchange of the caller's own, such as that of mpi4py:
        from_allgather(mpi.rank, mpi.size, mpi.allgather)."""
        failures: list[BaseException] = []

        def exchange(_: Any, given: Any, out: int, length: int) -> int:
            try:
                gathered = b"".join(allgather(given[:length]))
                if len(gathered) != size * length:
                    raise ValueError(f"{len(gathered)} bytes, not {length} from each of {size}")
                ctypes.memmove(out, gathered, len(gathered))
            except BaseException as error:  # it goes to the caller
                failures.append(error)
            return len(failures)

        callback = _ALLGATHER(exchange)
        oob = sized(_Oob, rank=rank, nranks=size, allgather=ctypes.cast(callback, c_void_p))
        try:
            return cls._make(config, lib.coll_comm_create_oob, byref(oob))
        except Error as error:
            raise error from (failures[0] if failures else None)

    def _do(self, call: Call) -> Any:
        function, order = _CALLS[call.collective]
        call.comm = self._life.handle
        status = waits(call.comm, function, *order(call))
        if status:
            raise error_of(status)
        if not note(self, call):
            self._judge(call)
        return call.result

    def _judge(self, call: Call) -> None:
        """Raise what a function of Op.user() raised.  The results mean nothing then."""
        if call.reducer is not None and call.reducer.failures:
            failure = call.reducer.failures[0]
            call.reducer.failures.clear()
            self._life.abort(failure)
            raise failure

    @property
    def start(self) -> View:
        return View(self, _started)

    @property
    def prepare(self) -> View:
        return View(self, Request)

    @property
    def plan(self) -> View:
        return View(self, _plan)

    @property
    def candidates(self) -> View:
        return View(self, _candidates)

    def _derive(self, function: Any, *arguments: Any) -> Communicator | None:
        new, old = c_void_p(), self._life.handle
        check(waits(old, function, old, *arguments, byref(new)))
        return Communicator(new.value) if new else None

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Divide the ranks, one communicator a color.  None: be in no new one."""
        return self._derive(lib.coll_comm_split, -1 if color is None else color, key)

    def dup(self) -> Communicator:
        """Make a second communicator of the same ranks."""
        return cast(Communicator, self._derive(lib.coll_comm_dup))

    def failed(self) -> list[int]:
        """Return the ranks that this process knows to be dead."""
        ranks, n = (c_int * self.size)(), c_int(self.size)
        check(lib.coll_comm_failed(self._open(), ranks, byref(n)))
        return ranks[: n.value]

    def agree(self, flags: int) -> int:
        """Return the bits that all living ranks have passed, the same on each of them.

        All of them call it, whether the communicator has failed or not.
        """
        bits = c_uint64(flags)
        check(waits(self._open(), lib.coll_comm_agree, self._open(), byref(bits)))
        return bits.value

    def shrink(self, exclude: Sequence[int] = (), abort: bool = False) -> Communicator:
        """Make a communicator of the ranks that live, but for those that are excluded.

        All of these call it, whether this communicator has failed or not, and then close this
        one.  abort=True ends what still runs, on all ranks.
        """
        ranks = (c_int * len(exclude))(*exclude)
        new = self._derive(lib.coll_comm_shrink, ranks, len(exclude), int(abort))
        self._life.is_replaced = True
        return cast(Communicator, new)

    def grow(self, n: int, id: bytes | None = None) -> Communicator:
        """Make a communicator of these ranks and n newcomers, which get the numbers behind.

        All of them get it, or all an error.  Without an id, on rank 0, of unique_id(), the
        newcomers wait at the launcher.
        """
        return cast(Communicator, self._derive(lib.coll_comm_grow, n, id and id_of(id)))

    def waiting(self) -> int:
        """Return how many newcomers wait at the launcher to join."""
        n = c_int()
        check(lib.coll_comm_waiting(self._open(), byref(n)))
        return n.value

    def _on_memory(self, function: Any, array: Any, n_sizes: int) -> None:
        buffer = describe(array)
        size = buffer.length * SIZES[buffer.type]
        check(function(self._life.handle, buffer.pointer, *[size] * n_sizes))

    def register(self, array: Any) -> None:
        """Let the other ranks read an array in GPU memory in place.  All ranks call it."""
        self._on_memory(lib.coll_mem_register, array, 1)

    def deregister(self, array: Any) -> None:
        """End a registration.  All ranks call it."""
        self._on_memory(lib.coll_mem_deregister, array, 0)

    def mem_stats(self) -> dict[str, int]:
        """Return the bytes that the communicator holds, as in struct coll_mem_stats."""
        stats = sized(_MemStats)
        check(lib.coll_comm_mem_stats(self._life.handle, byref(stats)))
        return {name: getattr(stats, name) for name in _MEMORY}

    def has_spare_core(self) -> bool:
        """Say whether each rank of this host has a core for a second thread."""
        return bool(lib.coll_comm_has_spare_core(self._open()))

    def abort(self, why: str = "") -> None:
        """Fail all operations on every rank, from any thread."""
        check(self._life.abort(why))

    def async_error(self) -> Error | None:
        """Return the error that the communicator has failed with, or None."""
        status = lib.coll_comm_async_error(self._open())
        return error_of(status) if status else None

    def close(self) -> None:
        """End the communicator.  All ranks call it, in any order."""
        if self._finalizer.detach():
            check(self._life.end())

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Close; after an exception abort first, so that the others do not wait."""
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self.close()
        elif self._finalizer.detach():
            self._life.abort(error)
            self._life.end()

    def _open(self) -> int:
        if self._life.handle is None:
            raise InvalidError("the communicator is closed")
        return self._life.handle

