# SPDX-License-Identifier: BSD-3-Clause
"""Groups: several operations that start together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ._calls import Call
from ._interrupt import waits
from ._lib import lib
from .errors import check

if TYPE_CHECKING:
    from .comm import Communicator

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
        if _open.depth == 1:
            _open.noted = []

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        noted = _open.noted
        handle = noted[0][0]._life.handle if noted else None
        if kind is not None:  # after a call that is wrong the group starts nothing
            lib.coll_send(None, 0, 0, -1, handle, None)
        status = waits(handle, lib.coll_group_end)
        _open.depth -= 1
        if kind is None:
            check(status)
            for comm, call in [] if _open.depth else noted:
                comm._judge(call)
