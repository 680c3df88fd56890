# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of numpy, as _carry handles them: what TensorFlow's tensors are here."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import numpy as xp

from .._buffers import describe
from . import _carry


def on_stream(comm: Any, device: str, work: Any) -> Any:
    return nullcontext()


def place_of(arrays: Any) -> tuple[str, None]:
    return "numpy", None


def empty(like: Any, shape: Any) -> Any:
    return xp.empty(shape, like.dtype)


def zeros(shape: Any, dtype: Any, device: Any) -> Any:
    return xp.zeros(shape, dtype)


def units(array: Any) -> int:
    return int(array.size)


def length(array: Any) -> int:
    return int(array.nbytes)


def numbers(array: Any) -> Any:
    """For a reduction: a complex number is two."""
    return array[..., None].view(array.real.dtype) if array.dtype.kind == "c" else array


def reduction_of(name: str, array: Any) -> str:
    return name


def scale(array: Any, factor: float) -> None:
    """Multiply in place, in f64."""
    if factor != 1:
        array[...] = array.astype(xp.float64) * factor


def span(arrays: list[Any], finish: list[Any] | None = None, read: bool = True) -> Any:
    """Return arrays as one buffer; with `finish` a copy is noted there, to be spread."""
    if len(arrays) > 1 or not arrays[0].flags.c_contiguous:
        flat = xp.concatenate([array.reshape(-1) for array in arrays])
        if finish is not None:
            finish.append((arrays, flat))
        arrays = [flat]
    return describe(arrays[0])._replace(array=arrays)


def spread(flat: Any, arrays: Any) -> None:
    """Copy the parts of a flat array to where they belong."""
    ends = xp.cumsum([array.size for array in arrays])
    for part, array in zip(xp.split(flat, ends[:-1]), arrays):
        array[...] = part.reshape(array.shape)


def can_carry(array: Any, operation: str, reduction: str) -> str | None:
    """Say why an operation cannot take an array, or None."""
    try:
        describe(array)
    except TypeError as error:
        return str(error)
    kind = array.dtype.kind
    if reduction and kind == "b" or kind == "c" and reduction not in ("", "sum", "avg"):
        return f"{operation} has no {reduction} of type {array.dtype}"
    if reduction == "adasum" and kind in "iu":
        return f"Adasum takes floating-point numbers, not {array.dtype}"
    return None


_carry.HANDLERS["numpy"] = sys.modules[__name__]
