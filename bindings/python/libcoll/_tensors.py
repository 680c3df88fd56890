# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of torch as buffers of libcoll, for the backend of torch.distributed and Horovod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from . import _types
from ._buffers import Buffer

_KINDS = {"i": "int", "u": "uint", "f": "float"}
TYPES = {}  # of torch, those that the library has
for _name, _code in _types.CODES.items():
    _theirs = _types.EXTENDED.get(_name, _KINDS.get(_name[0], _name[0]) + _name[1:])
    if hasattr(torch, _theirs):
        TYPES[getattr(torch, _theirs)] = _code
_BYTES = _types.CODES["u8"]

_BOOL_OPS = {"sum": "lor", "max": "lor", "bor": "lor", "prod": "land", "min": "land"}
_BOOL_OPS.update({"band": "land", "bxor": "lxor"})


def reduction_of(name: str, tensor: torch.Tensor) -> str:
    """Return the reduction for the elements of a tensor: bool has those of logic."""
    if tensor.is_complex() and name not in ("sum", "avg"):
        raise TypeError(f"complex numbers have no {name}")
    return _BOOL_OPS.get(name, name) if tensor.dtype == torch.bool else name


def numbers(tensor: torch.Tensor) -> torch.Tensor:
    """For a reduction: a complex number is two."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def units(tensor: torch.Tensor) -> int:
    """Return the elements of a tensor, or its bytes if libcoll lacks their type."""
    return int(tensor.numel() * (1 if tensor.dtype in TYPES else tensor.element_size()))


def _are_adjacent(tensors: Sequence[torch.Tensor]) -> bool:
    end = None
    for tensor in tensors:
        if not tensor.is_contiguous() or (end is not None and tensor.data_ptr() != end):
            return False
        end = tensor.data_ptr() + tensor.numel() * tensor.element_size()
    return True


def span(tensors: list[torch.Tensor], finish: list[Any] | None = None, read: bool = True) -> Any:
    """Return tensors as one buffer: as they lie if they are adjacent, otherwise a copy.

    With `finish` they are written: the copy is noted there, to be spread in the end.
    """
    first = tensors[0]
    if any(t.dtype != first.dtype or t.device != first.device for t in tensors):
        raise TypeError("the tensors of an operation differ in type or device")
    if first.layout != torch.strided or first.device.type not in ("cpu", "cuda"):
        raise TypeError(f"libcoll takes dense tensors on cpu and cuda, not {first.layout} "
                        f"on {first.device}")  # fmt: skip
    if not _are_adjacent(tensors):
        if read:
            flat = _flatten_dense_tensors([t.detach() for t in tensors])
        else:
            flat = first.new_empty(sum(t.numel() for t in tensors))
        if finish is not None:
            finish.append((tensors, flat))
        first, tensors = flat, [flat]
    pointer, length = first.data_ptr() or None, sum(map(units, tensors))
    kind, is_host = TYPES.get(first.dtype, _BYTES), not first.is_cuda
    return Buffer(pointer, length, kind, tensors, None, is_host)


def counts_of(tensors: Sequence[torch.Tensor]) -> list[int] | None:
    """Return the counts of tensors that differ in length, or None."""
    counts = [units(t) for t in tensors]
    return None if len(set(counts)) < 2 else counts


def spread(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Copy the parts of a flat tensor to where they belong."""
    with torch.no_grad():
        for part, tensor in zip(_unflatten_dense_tensors(flat, tensors), tensors):
            if part.numel():
                tensor.copy_(part)
