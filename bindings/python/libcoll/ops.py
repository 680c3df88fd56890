# SPDX-License-Identifier: BSD-3-Clause
"""Reductions of the caller's own."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import c_int, c_size_t, c_void_p
from typing import Any, Callable

from . import _types
from ._buffers import describe
from ._lib import lib
from .errors import check

_USER_FN = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_void_p)


class Op:
    """A reduction that Op.user() or Op.premul() made.  It ends with its last reference."""

    def __init__(self, code: int, callback: Any, failures: list[BaseException]) -> None:
        self.code = code
        self.failures = failures
        # the callback lives as long as the library may call it
        weakref.finalize(self, _destroy, code, callback).atexit = False

    @classmethod
    def user(cls, fn: Callable[[Any, Any, Any], Any], commutes: bool = True) -> Op:
        """Make a reduction of fn(left, right, out), which sets out = left op right.

        The three are arrays of numpy, of any part of the vectors; out is left or right.
        A ufunc such as numpy.hypot is such a function.  fn must be associative and must
        not call libcoll.  commutes=False keeps the order of the ranks.
        """
        failures: list[BaseException] = []
        _types.numpy()

        def call(left: int, right: int, out: int, count: int, type: int, _: Any) -> None:
            try:
                fn(*(_types.view(pointer, count, type) for pointer in (left, right, out)))
            except BaseException as error:  # it goes to the caller of the operation
                failures.append(error)

        callback = _USER_FN(call)
        code = c_int()
        check(lib.coll_op_create_user(callback, None, commutes, ctypes.byref(code)))
        return cls(code.value, callback, failures)

    @classmethod
    def premul(cls, scalar: Any) -> Op:
        """Make a sum of each rank's array times a scalar, such as numpy.float32(0.5)."""
        buffer = describe(scalar, False, "scalar")
        if buffer.length != 1:
            raise ValueError(f"scalar has {buffer.length} elements, not one")
        code = c_int()
        check(lib.coll_op_create_premul(buffer.pointer, buffer.type, ctypes.byref(code)))
        return cls(code.value, None, [])


def _destroy(code: int, callback: Any) -> None:
    lib.coll_op_destroy(code)
    del callback


def op_of(op: str | Op) -> tuple[int, Op | None]:
    """Return the number of a reduction, and the reduction if it is the caller's own."""
    if isinstance(op, Op):
        return op.code, op
    try:
        return _types.OPS[op], None
    except (KeyError, TypeError):
        known = ", ".join(_types.OPS)
        raise ValueError(f"there is no reduction {op!r}: use {known}, or an Op") from None
