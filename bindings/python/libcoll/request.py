# SPDX-License-Identifier: BSD-3-Clause
"""Requests, which do not block and can be started many times, and groups."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from ctypes import byref, c_void_p, cast
from typing import TYPE_CHECKING, Any

from . import _notices
from ._calls import Call
from ._interrupt import waits
from ._lib import COLLECTIVES, lib, sized, struct
from .errors import InvalidError, check, error_of

if TYPE_CHECKING:
    from .comm import Communicator

_Args = struct(
    "size:n collective:i type:i op:i root:i in_:p out:p count:n stream:p "
    "in_counts:p in_displs:p out_counts:p out_displs:p algo:s background:i "
    "notify:i status:p tag:i user_tag:n prescale:d postscale:d any_order:i"
)
_VALUES = ("type", "op", "root", "in_", "out", "count", "stream", "status", "tag")
_ARRAYS = ("in_counts", "in_displs", "out_counts", "out_displs")


def args_of(
    call: Call, algo: str | None = None, background: bool = False, **more: float
) -> Any:
    """Return the call as struct coll_args; more: fields of it that have no argument here."""
    fields = {name: getattr(call, name) for name in _VALUES}
    fields.update((name, cast(getattr(call, name), c_void_p)) for name in _ARRAYS)
    is_host = not call.stream and all(buffer.is_host for buffer in call.keep[:2])
    fields.update(background=background, notify=background and is_host)
    code, algorithm = COLLECTIVES[call.collective], algo.encode() if algo else None
    return sized(_Args, collective=code, algo=algorithm, **fields, **more)


async def _notice_of(handle: int) -> None:
    """Return when the operation of a request has ended."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(ended.set)

    _notices.watch(handle, tell)
    await ended.wait()


class Request:
    """An operation with its arguments.  `await request` waits for it, too.

    It keeps its arrays alive.  While it runs it stays alive itself.
    """

    def __init__(self, comm: Communicator, call: Call, args: Any) -> None:
        self._handle: int | None = None
        self._comm, self._call, self._notifies = comm, call, bool(args.notify)
        handle = c_void_p()
        check(lib.coll_request_create(byref(args), comm._life.handle, byref(handle)))
        self._handle = handle.value
        comm._life.requests.add(self)

    @property
    def result(self) -> Any:
        """The array that the operation writes; None on a rank that gets nothing."""
        return self._call.result

    def start(self) -> Request:
        """Start the operation."""
        check(lib.coll_start(self._handle))
        self._comm._life.running.add(self)
        return self

    def test(self) -> bool:
        """Make progress, and say whether the operation is done."""
        status = lib.coll_test(self._handle)
        return status != 1 and self._ended(status)

    def wait(self, timeout: float | None = None) -> Any:
        """Wait for the operation and return its array.

        timeout is in seconds; None means that of the communicator.  When it passes, the
        communicator has failed: test() asks without a deadline.
        """
        if timeout is not None and timeout <= 0:
            raise ValueError("timeout must be above 0; test() does not wait")
        handle = self._comm._life.handle
        self._ended(waits(handle, lib.coll_wait, self._handle, timeout or 0))
        return self.result

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait in an event loop.

        An operation in the background wakes the loop when it ends; any other one is moved
        by the loop, which polls: often at first, later once a millisecond.
        """
        if self._notifies and self._handle:
            yield from _notice_of(self._handle).__await__()
        pause = 0.0
        while not self.test():
            yield from asyncio.sleep(pause).__await__()
            pause = min(pause + 20e-6, 1e-3)
        return self.result

    def _ended(self, status: int) -> bool:
        self._comm._life.running.discard(self)
        if status < 0:
            raise error_of(status)
        self._comm._judge(self._call)
        return True

    def free(self) -> None:
        """Free the request; its last reference does so, too.  It must not run."""
        if self._handle and self._comm._life.handle:
            if lib.coll_test(self._handle) == 1:
                raise InvalidError("the request runs: wait() for it before free()")
            _notices.unwatch(self._handle)
            lib.coll_request_destroy(self._handle)
        self._handle = None

    def __del__(self) -> None:
        if self._handle and self not in self._comm._life.running:
            self.free()


class _Open(threading.local):
    """The groups that this thread has begun, and the calls in them."""

    def __init__(self) -> None:
        self.depth = 0
        self.noted: list[tuple[Communicator, Call]] = []


_open = _Open()


def note(comm: Communicator, call: Call) -> bool:
    """Keep the arrays of a call until its group ends; say whether there is a group."""
    if _open.depth:
        _open.noted.append((comm, call))
    return _open.depth > 0


class group:
    """`with libcoll.group():` starts the operations of the block together, at its end.

    Their arrays hold the results behind the block.  An exception in the block starts
    nothing.  Groups nest; the outermost one counts.
    """

    def __enter__(self) -> None:
        check(lib.coll_group_start())
        _open.depth += 1

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        noted = list(_open.noted)
        handle = noted[0][0]._life.handle if noted else None
        if kind is not None:  # after a call that is wrong the group starts nothing
            lib.coll_send(None, 0, 0, -1, handle, None)
        status = waits(handle, lib.coll_group_end)
        _open.depth -= 1
        if _open.depth:
            noted.clear()
        else:
            _open.noted = []
        if kind is None:
            check(status)
            for comm, call in noted:
                comm._judge(call)
