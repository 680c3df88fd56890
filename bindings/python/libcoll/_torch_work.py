# SPDX-License-Identifier: BSD-3-Clause
"""What an operation of torch.distributed returns, and the thread that completes it.

A Work has requests of the library.  It ends when all of them have ended: its results are
copied to where they belong, and its future gets a value or an error.  Whoever waits moves
it; otherwise the completer does, the one thread of the process that looks at all of them.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from secrets import token_hex
from typing import Any

import torch
import torch.distributed as dist

from . import _notices
from ._calls import Status
from ._tensors import spread
from .comm import Communicator
from .errors import Error

SPINS = 100  # looks of a waiter before it leaves the operation to the completer
PAUSE = 0.05  # seconds between two looks of the completer at deadlines

Failure: type[RuntimeError] = getattr(dist, "DistBackendError", RuntimeError)


def seconds(timeout: Any) -> float | None:
    """Return a timeout of torch as seconds; None if there is none."""
    value = timeout.total_seconds() if isinstance(timeout, timedelta) else 0
    return value if value > 0 else None


class Engine:
    """A communicator with the lock that lets one thread at a time use it."""

    def __init__(self, comm: Communicator, timeout: float) -> None:
        self.comm, self.lock, self.timeout = comm, threading.RLock(), timeout
        self.rank, self.size = comm.rank, comm.size
        self.token = token_hex(8)  # of the group in this process
        self.uuids: set[int] = set()  # those that reconfigure() has had
        self.limit: float | None = None  # that of set_timeout()
        self._streams: dict[Any, Any] = {}
        # Old versions of torch keep the C++ half of a Work alone.  Its Python half lives
        # until somebody has waited for it.
        self.kept: deque[Work] = deque(maxlen=64)

    def stream(self, device: Any) -> Any:
        """Return the stream of a GPU to which the operations go."""
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]

    def synchronize(self) -> None:
        """Wait for what the streams carry out."""
        for stream in self._streams.values():
            stream.synchronize()

    def replace(self, comm: Communicator) -> None:
        """Go on with another communicator; what runs in the former one fails."""
        with self.lock:
            with contextlib.suppress(Error):
                self.comm.abort("the process group was reconfigured")
            for work in list(self.kept):
                work.poll()
            self.close()
            self.comm, self.rank, self.size = comm, comm.rank, comm.size

    def close(self) -> None:
        with self.lock, contextlib.suppress(Error):  # who waits has got the error
            self.comm.close()


class Work(getattr(dist, "Work", None) or dist._Work):  # type: ignore[misc]
    """An operation that runs.  `requests` have test(), as those of libcoll and a Work do."""

    def __init__(
        self, engine: Engine, requests: Sequence[Any], outputs: Any, finish: Any = (),
        status: Status | None = None, timeout: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._engine, self._requests, self._outputs = engine, deque(requests), outputs
        self._finish, self._status = finish, status
        self._deadline = time.monotonic() + timeout if timeout else None
        self._has_ended = False
        self._error: RuntimeError | None = None
        self._done = threading.Event()
        self._ended: Any = torch.futures.Future()
        # C++ code sees an exception only in a future whose callback has raised it
        self._future = self._ended.then(lambda ended: ended.value())
        engine.kept.append(self)
        if not self.poll():
            _completer.add(self)

    def poll(self) -> bool:
        """Make progress; say whether the operation has ended."""
        with self._engine.lock:
            if self._has_ended:
                return True
            try:
                while self._requests and self._requests[0].test():
                    self._requests.popleft()
                if self._requests and self._deadline and time.monotonic() > self._deadline:
                    self._requests[0].wait(1e-3)  # it fails, and says who is missing
                if self._requests:
                    return False
                for tensors, flat in self._finish:
                    spread(flat, tensors)
            except Exception as error:  # it goes to who waits
                self._error = Failure(f"libcoll: {error}")
                self._error.__cause__ = error
                self._requests.clear()
            self._has_ended, self._finish = True, ()
        if self._error is None:
            self._ended.set_result(self._outputs)
        else:
            self._ended.set_exception(self._error)
        self._done.set()
        return True

    def watch(self, call: Callable[[], None]) -> None:
        """Have the library call when a request ends; other works have their own calls."""
        with self._engine.lock:
            for request in self._requests:
                if not isinstance(request, Work):
                    _notices.watch(request._handle, call)

    def test(self) -> bool:
        """As that of a request: the parent of this work, if there is one, calls it."""
        if self.poll() and self._error:
            raise self._error
        return self._has_ended

    def wait(self, timeout: Any = None) -> bool:
        """Wait without the GIL, and raise the error of the operation."""
        limit = seconds(timeout)
        for _ in range(SPINS):
            if self.poll():
                break
        else:
            _completer.step_aside()
            if not self._done.wait(limit):
                self._deadline = time.monotonic()
                self._done.wait()
        self._forget()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self.poll()

    def is_success(self) -> bool:
        return self.poll() and self._error is None

    def exception(self) -> Any:
        return self._error if self.poll() else None

    def result(self) -> Any:
        self.wait()
        return self._outputs

    def get_future(self) -> Any:
        self._forget()
        return self._future

    def source_rank(self) -> int:
        if self._status is None:
            raise RuntimeError("only a receive has a source")
        self.wait()
        return int(self._status.source)

    _source_rank = source_rank

    def _forget(self) -> None:
        with contextlib.suppress(ValueError, IndexError):
            self._engine.kept.remove(self)


class _Completer:
    """The thread that completes what has ended.  It sleeps until the library says so."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._works: list[Work] = []
        self._has_news = False
        self._thread: threading.Thread | None = None

    def add(self, work: Work) -> None:
        with self._news:
            self._works.append(work)
            if self._thread is None:
                atexit.register(self._stop)
                self._begin()
        self.step_aside()
        work.watch(self._wake)

    def _wake(self) -> None:
        with self._news:
            self._has_news = True
            self._news.notify_all()

    def step_aside(self) -> None:
        """In a callback that waits: let another thread be the completer meanwhile."""
        with self._news:
            if threading.current_thread() is self._thread:
                self._begin()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name="libcoll-torch", daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        """The program ends; from now on only those who wait make progress."""
        with self._news:
            thread, self._thread = self._thread, threading.main_thread()
            self._news.notify_all()
        if thread:
            thread.join(1)

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._news:
                if self._thread is me and not self._has_news:
                    self._news.wait(PAUSE if self._works else None)
                self._has_news = False
                works = list(self._works)
            ended = []
            for work in works:
                if self._thread is not me:
                    return
                if work.poll():
                    ended.append(work)
            with self._news:
                if self._thread is not me:
                    return
                self._works = [work for work in self._works if work not in ended]
            del works, ended


_completer = _Completer()
