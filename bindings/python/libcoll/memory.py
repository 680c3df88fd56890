# SPDX-License-Identifier: BSD-3-Clause
"""Memory that the other ranks of a host read in place."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

from . import _types
from ._lib import lib
from .errors import check


def mem_alloc(shape: int | Sequence[int], dtype: Any = "f4") -> Any:
    """Make an array of zeros; it is freed with the last array that uses its memory.

    Each holds a file descriptor: make a few large ones.
    """
    numpy = _types.numpy()
    kind = numpy.dtype(dtype)
    count = int(numpy.prod(shape))
    pointer = ctypes.c_void_p()
    check(lib.coll_mem_alloc(ctypes.byref(pointer), count * kind.itemsize))
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(pointer.value or 0)
    weakref.finalize(memory, lib.coll_mem_free, pointer.value).atexit = False
    return numpy.frombuffer(memory, kind).reshape(shape)
