# SPDX-License-Identifier: BSD-3-Clause
"""Notices: a thread that sleeps until operations end, and then calls who waits for them."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from ctypes import byref, c_int

from ._lib import lib
from .errors import check

_lock = threading.Lock()
_watched: dict[int, Callable[[], None]] = {}  # by the handles of requests
_is_running = False


def _call_ended() -> None:
    with _lock:
        ended = [handle for handle in _watched if lib.coll_request_status(handle) != 1]
        calls = [_watched.pop(handle) for handle in ended]
    for call in calls:
        call()


def _run(fd: int) -> None:
    while True:
        select.select([fd], [], [])
        try:
            os.read(fd, 8)
        except BlockingIOError:  # another reader had it
            continue
        _call_ended()


def watch(handle: int, call: Callable[[], None]) -> None:
    """Call once when an operation ends whose request was made with `notify`.

    The call comes from the thread, or at once if it has ended.  unwatch() comes before
    the request is destroyed.
    """
    global _is_running
    with _lock:
        _watched[handle] = call
        if not _is_running:
            fd = c_int()
            check(lib.coll_completion_fd(byref(fd)))
            threading.Thread(target=_run, args=(fd.value,), name="libcoll", daemon=True).start()
            _is_running = True
    _call_ended()


def unwatch(handle: int | None) -> None:
    """Call who waits for it now."""
    with _lock:
        call = _watched.pop(handle, None) if handle else None
    if call:
        call()


def _forget() -> None:
    """In a child: the thread and the requests are its parent's."""
    global _lock, _is_running
    _lock, _is_running = threading.Lock(), False
    _watched.clear()


os.register_at_fork(after_in_child=_forget)
