# SPDX-License-Identifier: BSD-3-Clause
"""Carry out operations that all ranks have submitted, on tensors of any framework.

What differs between frameworks is in modules such as _torch, called `of` here:

- xp, the framework, as far as it has the functions of numpy; empty(), zeros(), scale();
- span() and spread(): tensors as one buffer, and back; units() and length(): the elements
  and bytes of one;
- numbers() and reduction_of(): what is reduced, and how; can_carry(): why something is not;
- place_of() and on_stream(): where tensors are, and the stream on which they are used.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

from .._buffers import Buffer
from .._calls import Operations
from .._types import NAMES
from ..comm import Communicator, View
from ..request import Request
from ._coordinator import Batch, Entry, Signature


HANDLERS: dict[str, Any] = {}  # the modules, by the devices in signatures


class Carrier:
    """What a coordinator calls with a batch; all ranks call it with the same signatures."""

    def __init__(self, fusion: int) -> None:
        self._fusion = fusion
        self._devices: dict[str, Any] = {}  # of this rank

    def __call__(self, comm: Communicator, batch: Batch) -> None:
        kinds: dict[tuple[str, str], list[tuple[Signature, Entry]]] = {}
        for signature, entry in batch:
            if entry is None:
                entry = _absent(signature, self._devices.get(signature.device, signature.device))
            elif signature.device == "cuda":
                self._devices[signature.device] = entry.inputs[0].device
            kinds.setdefault((signature.operation, signature.device), []).append((signature, entry))
        for (operation, device), work in kinds.items():
            of = HANDLERS[device]
            with of.on_stream(comm, device, work) as stream:
                getattr(self, "_" + operation)(comm, of, work, stream)

    def _allreduce(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        """Reduce tensors of one type together, up to the fusion threshold."""
        kinds: dict[Any, list[Any]] = {}
        for signature, entry in work:
            for given, output in zip(entry.inputs, entry.outputs):
                if output is not given:
                    output[...] = given
                kind = output.dtype, signature.reduction, signature.scale
                kinds.setdefault(kind, []).append(of.numbers(output))
        for (_, reduction, scale), tensors in kinds.items():
            for some in _pieces(of, tensors, self._fusion):
                if reduction == "adasum":
                    _adasum(comm, of, some, scale, stream)
                else:
                    _reduce(comm, of, some, reduction, scale, stream)

    def _allgather(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        mine = array("Q", [t.shape[0] for _, entry in work for t in entry.inputs])
        rows = array("Q", bytes(8 * len(mine) * comm.size))
        comm.allgather(mine, rows)
        n = 0
        for _, entry in work:
            entry.outputs = []
            for tensor in entry.inputs:
                of_ranks = list(rows[n :: len(mine)])
                n += 1
                output = of.empty(tensor, (sum(of_ranks), *tensor.shape[1:]))
                counts = _counts(of, tensor, of_ranks)
                comm.allgather(of.span([tensor]), of.span([output]), counts, stream=stream)
                entry.outputs.append(output)

    def _broadcast(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        finish: list[Any] = []
        for signature, entry in work:
            is_root = signature.root == comm.rank
            for given, output in zip(entry.inputs, entry.outputs):
                if is_root and output is not given:
                    output[...] = given
                buffer = of.span([output], None if is_root else finish, is_root)
                comm.broadcast(buffer, signature.root, stream=stream)
        for tensors, flat in finish:
            of.spread(flat, tensors)

    def _alltoall(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        for _, entry in work:
            tensor, splits = entry.inputs[0], array("Q", entry.extra)
            received = array("Q", bytes(8 * comm.size))
            comm.alltoall(splits, received)
            output = of.empty(tensor, (sum(received), *tensor.shape[1:]))
            counts, out_counts = _counts(of, tensor, splits), _counts(of, tensor, received)
            source, target = of.span([tensor]), of.span([output])
            comm.alltoall(source, target, counts, out_counts, stream=stream)
            entry.outputs = [output, of.xp.asarray(list(received), dtype=of.xp.int32)]

    def _reducescatter(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        for signature, entry in work:
            entry.outputs = []
            for given in entry.inputs:
                rows, more = divmod(given.shape[0], comm.size)
                of_ranks = [rows + (rank < more) for rank in range(comm.size)]
                output = of.empty(given, (of_ranks[comm.rank], *given.shape[1:]))
                parts, target = of.numbers(given), of.span([of.numbers(output)])
                op = of.reduction_of(signature.reduction, given)
                counts = _counts(of, parts, of_ranks)
                operations, scale = _scaling(comm, signature.scale, op, target)
                if scale[0] != 1:
                    parts = of.empty(parts, parts.shape)
                    parts[...] = of.numbers(given)
                    of.scale(parts, scale[0])
                operations.reduce_scatter(of.span([parts]), op, target, counts, stream=stream)
                of.scale(output, scale[1])
                entry.outputs.append(output)

    def _barrier(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        """The agreement has been one."""

    def _split(self, comm: Communicator, of: Any, work: Any, stream: Any) -> None:
        for _, entry in work:
            entry.outputs = [comm.split(0 if comm.rank in entry.extra else None)]


def _counts(of: Any, tensor: Any, rows: Iterable[int]) -> list[int]:
    """Return numbers of rows as elements."""
    row = of.units(of.empty(tensor, tensor.shape[1:]))
    return [row * n for n in rows]


def _absent(signature: Signature, device: Any) -> Entry:
    """What a rank that has joined adds to an operation: zeros, or no rows."""
    rows = (0,) if signature.operation == "allgather" else ()
    tensors = [
        HANDLERS[signature.device].zeros((*rows, *shape), dtype, device)
        for shape, dtype in zip(signature.shapes, signature.types)
    ]
    return Entry(signature, tensors, tensors)


def _pieces(of: Any, tensors: list[Any], limit: int) -> Iterator[list[Any]]:
    """Divide a list so that no part has more bytes than the limit, if it can be."""
    some: list[Any] = []
    length = 0
    for tensor in tensors:
        more = of.length(tensor)
        if some and length + more > limit:
            yield some
            some, length = [], 0
        some.append(tensor)
        length += more
    yield some


def _scaling(
    comm: Communicator, scale: tuple[float, float], op: str, buffer: Buffer
) -> tuple[Operations, tuple[float, float]]:
    """Return the operations to call, and the factors that they leave to the caller.

    The library multiplies in sums of floats, by any factor but 0, which means none there.
    """
    is_sum = op in ("sum", "avg") and NAMES[buffer.type].startswith(("f", "bf"))
    if scale == (1, 1) or not is_sum or not all(0 < abs(factor) < 1e38 for factor in scale):
        return comm, scale
    return View(comm, _finished, prescale=scale[0], postscale=scale[1]), (1, 1)


def _finished(comm: Communicator, call: Any, args: Any) -> Any:
    return Request(comm, call, args).start().wait()


def _reduce(
    comm: Communicator, of: Any, tensors: Any, reduction: str, scale: Any, stream: Any
) -> None:  # fmt: skip
    finish: list[Any] = []
    buffer: Buffer = of.span(tensors, finish)
    op = of.reduction_of(reduction, tensors[0])
    operations, scale = _scaling(comm, scale, op, buffer)
    for tensor in buffer.array:
        of.scale(tensor, scale[0])
    operations.allreduce(buffer, op, stream=stream)
    for tensor in buffer.array:
        of.scale(tensor, scale[1])
    for parts, flat in finish:
        of.spread(flat, parts)


def _adasum(comm: Communicator, of: Any, tensors: Any, scale: Any, stream: Any) -> None:
    """Combine pairs of ranks, then pairs of pairs, each tensor for itself; see combine()."""

    def combine(a: Any, b: Any) -> Any:
        """Add the parts of two gradients that are orthogonal, and average the others."""
        product, a2, b2 = a @ b, a @ a, b @ b
        one = 1 - product / (2 * a2) if a2 else 1
        other = 1 - product / (2 * b2) if b2 else 1
        return one * a + other * b

    lengths = [prod(tensor.shape) for tensor in tensors]
    rows = of.empty(tensors[0], (comm.size, sum(lengths)))
    for tensor in tensors:
        of.scale(tensor, scale[0])
    comm.allgather(of.span(tensors), of.span([rows]), stream=stream)
    begin = 0
    for tensor, n in zip(tensors, lengths):
        columns = rows[:, begin : begin + n]
        parts = list(of.xp.asarray(columns, dtype=of.xp.float64))
        while len(parts) > 1:
            parts = list(map(combine, parts[::2], parts[1::2]))
        tensor[...] = parts[0].reshape(tensor.shape)
        of.scale(tensor, scale[1])
        begin += n
