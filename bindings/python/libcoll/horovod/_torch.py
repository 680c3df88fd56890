# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of torch, as _carry handles them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch

from .._tensors import TYPES, numbers, reduction_of, span, spread, units
from . import _carry

__all__ = ["numbers", "reduction_of", "span", "spread", "units"]  # by which _carry works, too

xp = torch
_streams: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # of communicators and devices


@contextmanager
def on_stream(comm: Any, device: str, work: Any) -> Iterator[Any]:
    """For tensors on the GPU: a stream that waits for them, and has ended behind."""
    with torch.no_grad():
        if device == "cpu":
            yield None
            return
        streams, place = _streams.setdefault(comm, {}), work[0][1].inputs[0].device
        if place not in streams:
            streams[place] = torch.cuda.Stream(place)
        stream = streams[place]
        for _, entry in work:
            if entry.event is not None:
                stream.wait_event(entry.event)
        with torch.cuda.stream(stream):
            yield stream
        stream.synchronize()


def place_of(tensors: Any) -> tuple[str, Any]:
    """Return the kind of device, and an event when the tensors are there."""
    devices = {tensor.device.type for tensor in tensors} or {"cpu"}
    if len(devices) > 1:
        raise ValueError("the tensors of a group are on different devices")
    is_gpu = "cuda" in devices
    stream = torch.cuda.current_stream(tensors[0].device) if is_gpu else None
    return devices.pop(), stream and stream.record_event()


def empty(like: torch.Tensor, shape: Any) -> torch.Tensor:
    return like.new_empty(shape)


def zeros(shape: Any, dtype: Any, device: Any) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


def length(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor."""
    return int(tensor.numel() * tensor.element_size())


def scale(tensor: torch.Tensor, factor: float) -> None:
    """Multiply in place, in f64."""
    if factor != 1:
        tensor.copy_(tensor.double() * factor)


def can_carry(tensor: torch.Tensor, operation: str, reduction: str) -> str | None:
    """Say why an operation cannot take a tensor, or None."""
    if tensor.layout != torch.strided or tensor.device.type not in ("cpu", "cuda"):
        return f"{operation} takes dense tensors on cpu and cuda, not {tensor.layout} tensors " \
               f"on {tensor.device}"  # fmt: skip
    if reduction and tensor.dtype not in TYPES and not tensor.is_complex():
        return f"{operation} has no numbers of type {tensor.dtype}"
    if reduction == "adasum" and not tensor.dtype.is_floating_point:
        return f"Adasum takes floating-point numbers, not {tensor.dtype}"
    return None


_carry.HANDLERS.update(cpu=sys.modules[__name__], cuda=sys.modules[__name__])
