# SPDX-License-Identifier: BSD-3-Clause
"""What belongs to the process: ids of groups, shared memory, log lines."""

from __future__ import annotations

import atexit
import ctypes
import weakref
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_void_p
from typing import Any, Callable

from . import _types
from ._lib import lib
from .errors import check

LEVELS = ("error", "warn", "info", "debug", "trace")

_HANDLER = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_char_p, c_void_p)
_handlers: list[Any] = []  # a thread may still be in a former one


def id_of(id: bytes, maker: str = "an id of unique_id()") -> bytes:
    """Return the id, or a handle, if it has the length of one."""
    if len(id) != 128:
        raise ValueError(f"{maker} has 128 bytes, not {len(id)}")
    return id


def unique_id() -> bytes:
    """Make the id of a new group, in the process of its rank 0.  Pass it on in private."""
    id = ctypes.create_string_buffer(128)
    check(lib.coll_get_unique_id(id))
    return id.raw


def handle() -> bytes:
    """Return the handle of this process, at which groups can meet.  Pass it on in private."""
    handle = ctypes.create_string_buffer(128)
    check(lib.coll_comm_handle(handle))
    return handle.raw


def unique_id_free(id: bytes) -> None:
    """Give back an id that no group will use."""
    check(lib.coll_unique_id_free(id_of(id)))


def mem_alloc(shape: int | Sequence[int], dtype: Any = "f4") -> Any:
    """Make an array of zeros; it is freed with the last array that uses its memory.

    Each holds a file descriptor: make a few large ones.
    """
    numpy = _types.numpy()
    kind, pointer = numpy.dtype(dtype), c_void_p()
    size = int(numpy.prod(shape)) * kind.itemsize
    check(lib.coll_mem_alloc(byref(pointer), size))
    memory = (ctypes.c_char * size).from_address(pointer.value or 0)
    weakref.finalize(memory, lib.coll_mem_free, pointer.value).atexit = False
    return numpy.frombuffer(memory, kind).reshape(shape)


def set_log_handler(handler: Callable[[str, str, str], Any] | None) -> None:
    """Send lines to handler(level, part, text) instead of to stderr; None: to stderr.

    COLL_LOG says which lines there are.  Several threads may be in the handler at once.
    """

    def call(level: int, part: bytes, text: bytes, _: Any) -> None:
        if handler is not None:
            handler(LEVELS[level], part.decode(), text.decode(errors="replace"))

    if handler is not None:
        _handlers.append(_HANDLER(call))
        atexit.register(lib.coll_set_log_handler, None, None)
    lib.coll_set_log_handler(_handlers[-1] if handler else None, None)
