# SPDX-License-Identifier: BSD-3-Clause
"""Buffers: what an operation needs to know of an array, from any of four protocols.

An array may have the buffer protocol, __array_interface__, __cuda_array_interface__ or
__dlpack__.  All must be C-contiguous, in the byte order of the machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char, c_char_p, c_int, c_int64, c_void_p, cast, py_object
from math import prod
from typing import Any, NamedTuple

from . import _types
from ._lib import struct

_DL_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_DL_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_TENSOR = "data:p device:i device_id:i ndim:i code:u8 bits:u8 lanes:u16 "
_TENSOR += "shape:p strides:p offset:u64"
_DLTensor = struct(_TENSOR)
_DLVersioned = struct("major:u32 minor:u32 context:p deleter:p flags:u64 " + _TENSOR)

_api = ctypes.pythonapi
_get_buffer, _release_buffer = _api.PyObject_GetBuffer, _api.PyBuffer_Release
_get_buffer.argtypes, _release_buffer.argtypes = [py_object, c_void_p, c_int], [c_void_p]
_capsule_is, _capsule_pointer = _api.PyCapsule_IsValid, _api.PyCapsule_GetPointer
_capsule_is.argtypes = _capsule_pointer.argtypes = [py_object, c_char_p]
_capsule_pointer.restype = c_void_p


class Buffer(NamedTuple):
    """Memory of an array, which array and owner keep alive."""

    pointer: int | None
    length: int
    type: int
    array: Any
    owner: Any = None
    is_host: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(getattr(self.array, "shape", (self.length,)))


class _View(NamedTuple):
    """What a protocol says of an array; strides in bytes, or None if contiguous."""

    pointer: int
    shape: Sequence[int]
    strides: Sequence[int] | None
    type: int | None
    type_text: str
    is_readonly: bool
    owner: Any = None
    is_host: bool = True


def _by_buffer(array: Any) -> _View | None:
    try:
        view = memoryview(array)
    except (TypeError, ValueError, BufferError):
        return None
    kind = _types.of_format(view.format, view.itemsize)
    strides = None if view.c_contiguous else view.strides
    raw = (c_void_p * 16)()  # a Py_buffer, whose first member is the address
    _get_buffer(view, raw, 0 if strides is None else 0x18)  # PyBUF_SIMPLE, PyBUF_STRIDES
    pointer = raw[0] or 0
    _release_buffer(raw)
    return _View(pointer, view.shape or (), strides, kind, view.format, view.readonly, view)


def _by_interface(array: Any) -> _View | None:
    found = getattr(array, "__array_interface__", None)
    is_host = found is not None
    found = found or getattr(array, "__cuda_array_interface__", None)
    if found is None:
        return None
    text, (pointer, is_readonly) = found["typestr"], found["data"]
    kind = _types.of_typestr(text, getattr(array, "dtype", None))
    shape, strides = found["shape"], found.get("strides")
    return _View(pointer, shape, strides, kind, text, is_readonly, None, is_host)


def _by_dlpack(array: Any) -> _View | None:
    if not hasattr(array, "__dlpack__"):
        return None
    # -1: the caller orders the work of streams
    arguments = {"stream": -1} if array.__dlpack_device__()[0] in _DL_CUDA else {}
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        capsule = array.__dlpack__(**arguments)
    is_readonly = False
    if _capsule_is(capsule, b"dltensor_versioned"):
        tensor = _DLVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        is_readonly = bool(tensor.flags & 1)
    else:
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if tensor.device not in _DL_HOST + _DL_CUDA:
        raise TypeError(f"the memory is of DLPack's device {tensor.device}, not the host or CUDA")
    kind = _types.of_dlpack(tensor.code, tensor.bits, tensor.lanes)
    text = f"DLPack's code {tensor.code} of {tensor.bits} bits"
    shape = cast(tensor.shape, POINTER(c_int64))[: tensor.ndim]
    strides = None
    if tensor.strides:
        counted = cast(tensor.strides, POINTER(c_int64))[: tensor.ndim]
        strides = [n * tensor.bits // 8 for n in counted]
    pointer, is_host = (tensor.data or 0) + tensor.offset, tensor.device in _DL_HOST
    return _View(pointer, shape, strides, kind, text, is_readonly, capsule, is_host)


def _is_contiguous(view: _View, size: int) -> bool:
    if view.strides is None or 0 in view.shape:
        return True
    for length, stride in zip(reversed(view.shape), reversed(view.strides)):
        if length > 1 and stride != size:
            return False
        size *= length
    return True


def _view(array: Any) -> _View | None:
    """Return what a protocol says; DLPack has names for types that the others lack."""
    view = _by_buffer(array) or _by_interface(array)
    if view is not None and view.type is not None:
        return view
    try:
        return _by_dlpack(array) or view
    except BufferError:
        if view is None:
            raise
        return view


def _describe(array: Any, is_written: bool, name: str) -> Buffer:
    view = _view(array)
    if view is None:
        raise TypeError(
            f"{name} is of type {type(array).__name__}, which is no buffer: pass a numpy array "
            "or anything with the buffer protocol, an array interface or DLPack"
        )
    if view.type is None:
        known = ", ".join(_types.NAMES)
        raise TypeError(f"{name} has elements ({view.type_text}) that libcoll lacks: use {known}")
    if not _is_contiguous(view, _types.SIZES[view.type]):
        raise TypeError(f"{name} is not contiguous: pass numpy.ascontiguousarray() of it")
    if is_written and view.is_readonly:
        raise TypeError(f"{name} is read-only, and the operation writes to it: pass a copy")
    length = prod(view.shape)
    return Buffer(view.pointer or None, length, view.type, array, view.owner, view.is_host)


_known_dtypes: dict[Any, int] = {}


def describe(array: Any, is_written: bool = False, name: str = "array") -> Buffer:
    """Return what an operation needs to know of an array, or raise TypeError.

    An array of numpy that is contiguous and can be written takes the short way.  A Buffer
    is what it says.
    """
    if type(array) is Buffer:
        return array
    try:
        kind, pointer = _known_dtypes[array.dtype], ctypes.addressof(c_char.from_buffer(array))
        return Buffer(pointer, array.size, kind, array)
    except (AttributeError, KeyError, TypeError, ValueError, BufferError):
        buffer = _describe(array, is_written, name)
    if type(array).__module__ == "numpy" and buffer.is_host:
        _known_dtypes[array.dtype] = buffer.type
    return buffer


def empty_like(buffer: Buffer, shape: Sequence[int]) -> Any:
    """Make an array of numpy for a result, with the type of a buffer in host memory."""
    if not buffer.is_host:
        raise TypeError("results for buffers in GPU memory need out=")
    numpy, dtype = _types.numpy(), getattr(buffer.array, "dtype", None)
    if not isinstance(dtype, numpy.dtype):
        dtype = _types.dtype_of(buffer.type)
    return numpy.empty(shape, dtype)
