# SPDX-License-Identifier: BSD-3-Clause
"""Requests: operations that do not block, and that can be started many times."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ._calls import Call
from ._interrupt import waits
from ._lib import COLLECTIVES, Args, lib
from .errors import InvalidError, check, error_of

if TYPE_CHECKING:
    from .comm import Communicator

_FIELDS = ("type", "op", "root", "in_", "out", "count", "stream")
_ARRAYS = ("in_counts", "in_displs", "out_counts", "out_displs")


def args_of(call: Call, algo: str | None = None, background: bool = False) -> Args:
    """Return the call as struct coll_args."""
    args = Args(ctypes.sizeof(Args), COLLECTIVES[call.collective])
    for name in _FIELDS:
        setattr(args, name, getattr(call, name))
    for name in _ARRAYS:
        setattr(args, name, ctypes.cast(getattr(call, name), ctypes.c_void_p))
    args.algo, args.background = algo.encode() if algo else None, background
    return args


class Request:
    """An operation with its arguments.  `await request` waits for it, too.

    It keeps its arrays alive.  While it runs it stays alive itself.
    """

    def __init__(self, comm: Communicator, call: Call, args: Args) -> None:
        self._handle: int | None = None
        self._comm, self._call = comm, call
        handle = ctypes.c_void_p()
        check(lib.coll_request_create(ctypes.byref(args), comm._life.handle, ctypes.byref(handle)))
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
        """Wait in an event loop, which polls: often at first, later once a millisecond."""
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
            lib.coll_request_destroy(self._handle)
        self._handle = None

    def __del__(self) -> None:
        if self._handle and self not in self._comm._life.running:
            self.free()
