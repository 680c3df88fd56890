# SPDX-License-Identifier: BSD-3-Clause
"""Carry out operations on tensors of torch that all ranks have submitted."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .._buffers import Buffer
from .._tensors import TYPES, numbers, reduction_of, span, spread, units
from ..comm import Communicator
from ._coordinator import Batch, Entry, Signature


class Carrier:
    """What a coordinator calls with a batch; all ranks call it with the same signatures."""

    def __init__(self, fusion: int) -> None:
        self._fusion = fusion
        self._streams: dict[Any, Any] = {}
        self._devices: dict[str, Any] = {}  # of this rank

    def __call__(self, comm: Communicator, batch: Batch) -> None:
        kinds: dict[tuple[str, str], list[tuple[Signature, Entry]]] = {}
        for signature, entry in batch:
            if entry is None:
                entry = _absent(signature, self._devices.get(signature.device, signature.device))
            elif signature.device != "cpu":
                self._devices[signature.device] = entry.inputs[0].device
            kinds.setdefault((signature.operation, signature.device), []).append((signature, entry))
        for (operation, device), work in kinds.items():
            with torch.no_grad(), self._on_stream(comm, device, work) as stream:
                getattr(self, "_" + operation)(comm, work, stream)

    @contextmanager
    def _on_stream(self, comm: Communicator, device: str, work: Any) -> Iterator[Any]:
        """For tensors on the GPU: a stream that waits for them, and has ended behind."""
        if device == "cpu":
            yield None
            return
        place = comm, work[0][1].inputs[0].device
        if place not in self._streams:
            self._streams[place] = torch.cuda.Stream(place[1])
        stream = self._streams[place]
        for _, entry in work:
            if entry.event is not None:
                stream.wait_event(entry.event)
        with torch.cuda.stream(stream):
            yield stream
        stream.synchronize()

    def _allreduce(self, comm: Communicator, work: Any, stream: Any) -> None:
        """Reduce tensors of one type together, up to the fusion threshold."""
        kinds: dict[Any, list[torch.Tensor]] = {}
        for signature, entry in work:
            for given, output in zip(entry.inputs, entry.outputs):
                if output is not given:
                    output.copy_(given)
                kind = output.dtype, signature.reduction, signature.scale
                kinds.setdefault(kind, []).append(numbers(output.detach()))
        for (_, reduction, scale), tensors in kinds.items():
            for some in _pieces(tensors, self._fusion):
                if reduction == "adasum":
                    _adasum(comm, some, scale, stream)
                else:
                    _reduce(comm, some, reduction, scale, stream)

    def _allgather(self, comm: Communicator, work: Any, stream: Any) -> None:
        mine = array("Q", [t.shape[0] for _, entry in work for t in entry.inputs])
        rows = array("Q", bytes(8 * len(mine) * comm.size))
        comm.allgather(mine, rows)
        n = 0
        for _, entry in work:
            entry.outputs = []
            for tensor in entry.inputs:
                of_ranks = list(rows[n :: len(mine)])
                n += 1
                output = tensor.new_empty((sum(of_ranks), *tensor.shape[1:]))
                counts = _counts(tensor, of_ranks)
                comm.allgather(span([tensor]), span([output]), counts, stream=stream)
                entry.outputs.append(output)

    def _broadcast(self, comm: Communicator, work: Any, stream: Any) -> None:
        finish: list[Any] = []
        for signature, entry in work:
            is_root = signature.root == comm.rank
            for given, output in zip(entry.inputs, entry.outputs):
                if is_root and output is not given:
                    output.copy_(given)
                buffer = span([output], None if is_root else finish, is_root)
                comm.broadcast(buffer, signature.root, stream=stream)
        for tensors, flat in finish:
            spread(flat, tensors)

    def _alltoall(self, comm: Communicator, work: Any, stream: Any) -> None:
        for _, entry in work:
            tensor, splits = entry.inputs[0], array("Q", entry.extra)
            received = array("Q", bytes(8 * comm.size))
            comm.alltoall(splits, received)
            output = tensor.new_empty((sum(received), *tensor.shape[1:]))
            counts, out_counts = _counts(tensor, splits), _counts(tensor, received)
            comm.alltoall(span([tensor]), span([output]), counts, out_counts, stream=stream)
            entry.outputs = [output, torch.tensor(list(received), dtype=torch.int32)]

    def _reducescatter(self, comm: Communicator, work: Any, stream: Any) -> None:
        for signature, entry in work:
            entry.outputs = []
            for given in entry.inputs:
                rows, more = divmod(given.shape[0], comm.size)
                of_ranks = [rows + (rank < more) for rank in range(comm.size)]
                output = given.new_empty((of_ranks[comm.rank], *given.shape[1:]))
                source = _scaled(numbers(given.detach()).clone(), signature.scale[0])
                op, counts = reduction_of(signature.reduction, given), _counts(source, of_ranks)
                target = span([numbers(output)])
                comm.reduce_scatter(span([source]), op, target, counts, stream=stream)
                entry.outputs.append(_scaled(output, signature.scale[1]))

    def _barrier(self, comm: Communicator, work: Any, stream: Any) -> None:
        """The agreement has been one."""

    def _split(self, comm: Communicator, work: Any, stream: Any) -> None:
        for _, entry in work:
            entry.outputs = [comm.split(0 if comm.rank in entry.extra else None)]


def _counts(tensor: torch.Tensor, rows: Iterable[int]) -> list[int]:
    """Return numbers of rows as elements."""
    row = units(tensor.new_empty(tensor.shape[1:]))
    return [row * n for n in rows]


def _absent(signature: Signature, device: Any) -> Entry:
    """What a rank that has joined adds to an operation: zeros, or no rows."""
    rows = (0,) if signature.operation == "allgather" else ()
    tensors = [
        torch.zeros((*rows, *shape), dtype=dtype, device=device)
        for shape, dtype in zip(signature.shapes, signature.types)
    ]
    return Entry(signature, tensors, tensors)


def _pieces(tensors: list[torch.Tensor], limit: int) -> Iterator[list[torch.Tensor]]:
    """Divide a list so that no part has more bytes than the limit, if it can be."""
    some: list[torch.Tensor] = []
    length = 0
    for tensor in tensors:
        more = tensor.numel() * tensor.element_size()
        if some and length + more > limit:
            yield some
            some, length = [], 0
        some.append(tensor)
        length += more
    yield some


def _scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """Multiply in place: small floats as f32, integers as f64."""
    if factor == 1:
        return tensor
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor.mul_(factor)
    wide = torch.float32 if tensor.dtype.is_floating_point else torch.float64
    return tensor.copy_(tensor.to(wide) * factor)


def _reduce(comm: Communicator, tensors: Any, reduction: str, scale: Any, stream: Any) -> None:
    finish: list[Any] = []
    buffer: Buffer = span(tensors, finish)
    for tensor in buffer.array:
        _scaled(tensor, scale[0])
    comm.allreduce(buffer, reduction_of(reduction, tensors[0]), stream=stream)
    for tensor in buffer.array:
        _scaled(tensor, scale[1])
    for parts, flat in finish:
        spread(flat, parts)


def _adasum(comm: Communicator, tensors: Any, scale: Any, stream: Any) -> None:
    """Combine pairs of ranks, then pairs of pairs, each tensor for itself; see combine()."""

    def combine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Add the parts of two gradients that are orthogonal, and average the others."""
        x, y = a.double(), b.double()
        product, x2, y2 = x @ y, x @ x, y @ y
        one = 1 - product / (2 * x2) if x2 else 1
        other = 1 - product / (2 * y2) if y2 else 1
        return (one * x + other * y).to(a.dtype)

    flat = _scaled(torch.cat([t.reshape(-1) for t in tensors]), scale[0])
    rows = flat.new_empty((comm.size, flat.numel()))
    comm.allgather(span([flat]), span([rows]), stream=stream)
    parts = [list(row.split([t.numel() for t in tensors])) for row in rows]
    while len(parts) > 1:
        parts = [list(map(combine, a, b)) for a, b in zip(parts[::2], parts[1::2])]
    spread(_scaled(torch.cat(parts[0]), scale[1]), tensors)


def can_carry(tensor: torch.Tensor, operation: str, reduction: str) -> str | None:
    """Say why an operation cannot take a tensor, or None."""
    if tensor.layout != torch.strided or tensor.device.type not in ("cpu", "cuda"):
        return f"{operation} takes dense tensors on cpu and cuda, not {tensor.layout} tensors " \
               f"on {tensor.device}"  # fmt: skip
    if reduction and tensor.dtype not in TYPES and not tensor.is_complex():
        return f"{operation} has no numbers of type {tensor.dtype}"
    if reduction == "adasum" and not tensor.dtype.is_floating_point:
        return f"Adasum takes floating-point numbers, not {tensor.dtype}"
    if not tensor.dim() and operation in ("allgather", "alltoall", "reducescatter"):
        return f"{operation} takes tensors of at least one dimension"
    return None
