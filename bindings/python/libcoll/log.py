# SPDX-License-Identifier: BSD-3-Clause
"""The library's log lines."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any, Callable

from ._lib import lib

LEVELS = ("error", "warn", "info", "debug", "trace")

_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
_kept: list[Any] = []  # a thread may still be in a former handler


def set_log_handler(handler: Callable[[str, str, str], Any] | None) -> None:
    """Send lines to handler(level, part, text) instead of to stderr; None: to stderr.

    COLL_LOG says which lines there are.  Several threads may be in the handler at once.
    """
    if handler is None:
        lib.coll_set_log_handler(None, None)
        return
    speak = handler

    def call(level: int, part: bytes, text: bytes, _: Any) -> None:
        speak(LEVELS[level], part.decode(), text.decode(errors="replace"))

    _kept.append(_HANDLER(call))
    lib.coll_set_log_handler(_kept[-1], None)
    atexit.register(lib.coll_set_log_handler, None, None)
