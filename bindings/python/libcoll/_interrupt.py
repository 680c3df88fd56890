# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C ends a wait.

Python runs its signal handlers between two instructions, so never while the main thread
waits inside the library.  A thread therefore hears of SIGINT by signal.set_wakeup_fd().
If the main thread is still in the same call a moment later, the thread aborts the
communicator: the call returns, Python raises KeyboardInterrupt, and the other ranks learn
why.  Where the program has a handler or a wakeup descriptor of its own, nothing is done.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any, Callable

from ._lib import lib

GRACE = 0.2  # seconds in which an operation may end by itself

# by thread: the communicator in whose call it is, in a tuple of this call's own
_waiting: dict[int, tuple[int | None]] = {}
_main = threading.main_thread().ident or 0
_wakeup: int | None = None

# held by who aborts a communicator and by who takes it away to end it
aborting = threading.RLock()


def _is_python_s() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _watch(reading: int) -> None:
    while True:
        if signal.SIGINT in os.read(reading, 64):
            call = _waiting.get(_main)
            time.sleep(GRACE)
            with aborting:
                if _is_python_s() and call and _waiting.get(_main) is call and call[0]:
                    lib.coll_comm_abort(call[0], b"a rank was interrupted by Ctrl-C (SIGINT)")


def prepare() -> None:
    """Begin to watch, in the main thread of a program that leaves SIGINT to Python."""
    global _wakeup
    if _wakeup is not None or threading.get_ident() != _main or not _is_python_s():
        return
    reading, _wakeup = os.pipe()
    os.set_blocking(_wakeup, False)
    former = signal.set_wakeup_fd(_wakeup, warn_on_full_buffer=False)
    if former != -1:
        signal.set_wakeup_fd(former)
        return
    threading.Thread(target=_watch, args=(reading,), name="libcoll-sigint", daemon=True).start()
    os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    """Do not tell the parent of the child's signals."""
    global _wakeup
    former = signal.set_wakeup_fd(-1)
    if former not in (-1, _wakeup):
        signal.set_wakeup_fd(former)
    _wakeup = None


def waits(comm: int | None, function: Callable[..., int], *arguments: Any) -> int:
    """Call a function of the library that may wait long."""
    thread = threading.get_ident()
    _waiting[thread] = (comm,)
    try:
        return function(*arguments)
    finally:
        del _waiting[thread]
