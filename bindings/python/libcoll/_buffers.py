# SPDX-License-Identifier: BSD-3-Clause
"""Buffers: what an operation needs to know of an array, from any of four protocols.

An array may have the buffer protocol, __array_interface__, __cuda_array_interface__ or
__dlpack__.  All must be C-contiguous, in the byte order of the machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_ssize_t, c_void_p
from typing import Any, NamedTuple

from . import _types

_api = ctypes.pythonapi
_DL_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_DL_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged


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
    readonly: bool
    owner: Any
    is_host: bool = True


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t)]
    _fields_ += [("itemsize", c_ssize_t), ("readonly", c_int), ("ndim", c_int)]
    _fields_ += [(name, c_void_p) for name in ("format", "shape", "strides", "sub", "internal")]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", c_int32), ("device_id", c_int32)]
    _fields_ += [("ndim", c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8)]
    _fields_ += [("lanes", ctypes.c_uint16), ("shape", POINTER(c_int64))]
    _fields_ += [("strides", POINTER(c_int64)), ("byte_offset", ctypes.c_uint64)]


class _DLVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", c_void_p)]
    _fields_ += [("deleter", c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_get_buffer = _api.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_release_buffer = _api.PyBuffer_Release
_release_buffer.argtypes = [POINTER(_PyBuffer)]
_release_buffer.restype = None
_capsule_is = _api.PyCapsule_IsValid
_capsule_is.argtypes = [ctypes.py_object, c_char_p]
_capsule_pointer = _api.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]
_capsule_pointer.restype = c_void_p


def _by_buffer(array: Any) -> _View | None:
    try:
        view = memoryview(array)
    except (TypeError, ValueError, BufferError):
        return None
    kind = _types.of_format(view.format, view.itemsize)
    strides = None if view.c_contiguous else view.strides
    raw = _PyBuffer()
    _get_buffer(view, raw, 0 if strides is None else 0x18)  # PyBUF_SIMPLE, PyBUF_STRIDES
    pointer = raw.buf or 0
    _release_buffer(raw)
    return _View(pointer, view.shape or (), strides, kind, view.format, view.readonly, view)


def _by_interface(array: Any) -> _View | None:
    is_host = True
    found = getattr(array, "__array_interface__", None)
    if found is None:
        is_host = False
        found = getattr(array, "__cuda_array_interface__", None)
    if found is None:
        return None
    pointer, is_readonly = found["data"]
    kind = _types.of_typestr(found["typestr"], getattr(array, "dtype", None))
    shape, strides = found["shape"], found.get("strides")
    return _View(pointer, shape, strides, kind, found["typestr"], is_readonly, None, is_host)


def _capsule(array: Any) -> Any:
    """Ask for a capsule; -1 as the stream: the caller orders the work of streams."""
    on_gpu = array.__dlpack_device__()[0] in _DL_CUDA
    arguments = {"stream": -1} if on_gpu else {}
    try:
        return array.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        return array.__dlpack__(**arguments)


def _by_dlpack(array: Any) -> _View | None:
    if not hasattr(array, "__dlpack__"):
        return None
    capsule = _capsule(array)
    is_readonly = False
    if _capsule_is(capsule, b"dltensor_versioned"):
        at = _capsule_pointer(capsule, b"dltensor_versioned")
        versioned = _DLVersioned.from_address(at)
        is_readonly, tensor = bool(versioned.flags & 1), versioned.tensor
    else:
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if tensor.device not in _DL_HOST + _DL_CUDA:
        raise TypeError(f"the memory is of DLPack's device {tensor.device}, not the host or CUDA")
    kind = _types.of_dlpack(tensor.code, tensor.bits, tensor.lanes)
    strides = None
    if tensor.strides:
        strides = [n * tensor.bits // 8 for n in tensor.strides[: tensor.ndim]]
    return _View(
        (tensor.data or 0) + tensor.byte_offset,
        tensor.shape[: tensor.ndim],
        strides,
        kind,
        f"DLPack's code {tensor.code} of {tensor.bits} bits",
        is_readonly,
        capsule,
        tensor.device in _DL_HOST,
    )


def _is_contiguous(view: _View, size: int) -> bool:
    expected = size
    if view.strides is None or 0 in view.shape:
        return True
    for length, stride in zip(reversed(view.shape), reversed(view.strides)):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def _describe(array: Any, is_written: bool, name: str) -> Buffer:
    view = _by_buffer(array) or _by_interface(array) or _by_dlpack(array)
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
    if is_written and view.readonly:
        raise TypeError(f"{name} is read-only, and the operation writes to it: pass a copy")
    count = 1
    for length in view.shape:
        count *= length
    return Buffer(view.pointer or None, count, view.type, array, view.owner, view.is_host)


_known_dtypes: dict[Any, int] = {}


def describe(array: Any, is_written: bool = False, name: str = "array") -> Buffer:
    """Return what an operation needs to know of an array, or raise TypeError.

    An array of numpy that is contiguous and can be written takes the short way.
    """
    try:
        return Buffer(
            ctypes.addressof(c_char.from_buffer(array)),
            array.size,
            _known_dtypes[array.dtype],
            array,
        )
    except (AttributeError, KeyError, TypeError, ValueError, BufferError):
        pass
    buffer = _describe(array, is_written, name)
    if type(array).__module__ == "numpy" and buffer.is_host:
        _known_dtypes[array.dtype] = buffer.type
    return buffer


def empty_like(buffer: Buffer, shape: Sequence[int]) -> Any:
    """Make an array of numpy for a result, with the type of a buffer in host memory."""
    if not buffer.is_host:
        raise TypeError("results for buffers in GPU memory need out=")
    dtype = getattr(buffer.array, "dtype", None)
    numpy = _types.numpy()
    if not isinstance(dtype, numpy.dtype):
        dtype = _types.dtype_of(buffer.type)
    return numpy.empty(shape, dtype)
