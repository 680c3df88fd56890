# SPDX-License-Identifier: BSD-3-Clause
"""The operations on tensors.

An operation is submitted to the coordinator of its process set, and carried out when all
ranks of the set have submitted one of the same name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import torch

from . import _torch
from ._common import Average, Sum, op_of, submit
from ._coordinator import Entry
from ._processes import ProcessSet, global_process_set, rank
from .compression import Compression

_submit = partial(submit, _torch)


# ---- how operations are submitted --------------------------------------------------


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make the function of one tensor from that of a list of tensors."""

    @wraps(function)
    def of_one(tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        result = function([tensor], *arguments, **options)
        if not isinstance(result, Entry):
            return result[0]
        result.is_list = False
        return result

    first, *others = inspect.signature(function).parameters.values()
    first = first.replace(name="tensor", annotation=torch.Tensor)
    of_one.__signature__ = inspect.Signature([first, *others])  # type: ignore[attr-defined]
    of_one.__name__ = of_one.__qualname__ = function.__name__.replace("grouped_", "")
    return of_one


class _Differentiable(torch.autograd.Function):  # type: ignore[misc]
    """An operation that run(tensors) starts, and whose gradients are back(*gradients)."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], back: Any, *tensors: torch.Tensor) -> Any:
        ctx.back = back
        handle = run(tensors)
        handle.is_list = True
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return (None, None, *ctx.back(*gradients))


def _apply(run: Any, back: Any, tensors: Any, compression: Any = Compression.none) -> list[Any]:
    sent, contexts = zip(*map(compression.compress, tensors))
    received = _Differentiable.apply(run, back, *sent)
    return list(map(compression.decompress, received, contexts))


def poll(handle: Entry) -> bool:
    """Say whether an operation is done, so that synchronize() does not wait."""
    return handle.is_done


def synchronize(handle: Any) -> Any:
    """Wait for an operation, and return its result."""
    return handle() if callable(handle) else handle.coordinator.wait(handle)


# ---- operations --------------------------------------------------------------------
#
# Where Horovod has a function of a list and one of a tensor, the latter is made of the former.


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor], average: bool | None = None, name: str | None = None,
    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set, *, _outputs: Any = None,
) -> Entry:  # fmt: skip
    """Start to reduce tensors, all of them together; the result is new tensors."""
    outputs = [torch.empty_like(t) for t in tensors] if _outputs is None else _outputs
    return _submit("allreduce", tensors, outputs, name, process_set, op_of(op, average),
                   scale=(float(prescale_factor), float(postscale_factor)))  # fmt: skip


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], *args: Any, **options: Any) -> Entry:
    """As grouped_allreduce_async(), in place."""
    return grouped_allreduce_async(tensors, *args, **options, _outputs=tensors)


def grouped_allreduce_(tensors: Sequence[torch.Tensor], *args: Any, **options: Any) -> Any:
    return synchronize(grouped_allreduce_async_(tensors, *args, **options))


def grouped_allreduce(
    tensors: Sequence[torch.Tensor], average: bool | None = None, name: str | None = None,
    compression: Any = Compression.none, op: int | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:  # fmt: skip
    """Reduce tensors, all of them together; gradients are reduced in the same way."""
    options: dict[str, Any] = {"op": op_of(op, average), "process_set": process_set}
    options.update(prescale_factor=prescale_factor, postscale_factor=postscale_factor)

    def run(sent: Any) -> Entry:
        return grouped_allreduce_async(sent, name=name, **options)

    return _apply(run, lambda *g: grouped_allreduce(g, **options), tensors, compression)


allreduce, allreduce_ = _of_one(grouped_allreduce), _of_one(grouped_allreduce_)
allreduce_async = _of_one(grouped_allreduce_async)
allreduce_async_ = _of_one(grouped_allreduce_async_)


def sparse_allreduce_async(
    tensor: torch.Tensor, name: str | None, op: int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:  # fmt: skip
    """Start to gather what each rank has; the handle is a function that waits for the sum."""
    tensor = tensor.coalesce()
    parts = [tensor.indices().t().contiguous(), tensor.values()]
    handle = grouped_allgather_async(parts, name and name + ".sparse", process_set)

    def wait() -> torch.Tensor:
        indices, values = synchronize(handle)
        values = values / process_set.size() if op == Average else values
        return torch.sparse_coo_tensor(indices.t(), values, tensor.size()).coalesce()

    return wait


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Entry:  # fmt: skip
    """Start to gather tensors; the first dimension may differ between ranks."""
    return _submit("allgather", tensors, (), name, process_set)


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:  # fmt: skip
    """Gather tensors; a gradient is the sum of those of this rank's rows."""
    shapes = [tensor.shape for tensor in tensors]

    def back(*gradients: torch.Tensor) -> Any:
        sums = grouped_allreduce(gradients, op=Sum, process_set=process_set)
        rows = [shape[0] for shape in shapes]
        of_ranks = allgather(torch.tensor([rows]), process_set=process_set)
        begins = of_ranks[: process_set.rank()].sum(0).tolist()
        return [t.narrow(0, begin, n) for t, begin, n in zip(sums, begins, rows)]

    return _apply(lambda sent: grouped_allgather_async(sent, name, process_set), back, tensors)


allgather_async, allgather = _of_one(grouped_allgather_async), _of_one(grouped_allgather)


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor], name: str | None = None, op: int = Average,
    process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Entry:  # fmt: skip
    """Start to reduce tensors; each rank gets some rows, the first ranks one more."""
    if op not in (Sum, Average):
        raise NotImplementedError("reducescatter supports Sum and Average")
    return _submit("reducescatter", tensors, (), name, process_set, op,
                   scale=(float(prescale_factor), float(postscale_factor)))  # fmt: skip


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor], name: str | None = None, compression: Any = Compression.none,
    op: int = Average, process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
) -> list[torch.Tensor]:  # fmt: skip
    """Reduce tensors and scatter the rows; gradients are gathered."""
    factor = prescale_factor * postscale_factor / (process_set.size() if op == Average else 1)

    scales = prescale_factor, postscale_factor

    def run(sent: Any) -> Entry:
        return grouped_reducescatter_async(sent, name, op, process_set, *scales)

    def back(*gradients: torch.Tensor) -> Any:
        return [g * factor for g in grouped_allgather(gradients, process_set=process_set)]

    return _apply(run, back, tensors, compression)


reducescatter = _of_one(grouped_reducescatter)
reducescatter_async = _of_one(grouped_reducescatter_async)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None,
    process_set: ProcessSet = global_process_set, *, _output: Any = None,
) -> Entry:  # fmt: skip
    """Start to copy the root's tensor to all ranks; the root is a rank of all processes."""
    if root_rank not in process_set._members():
        raise ValueError(f"root rank {root_rank} is not in the process set {process_set.ranks}")
    output = tensor if _output is None else _output
    root = process_set._members().index(root_rank)
    return _submit("broadcast", [tensor], [output], name, process_set, is_list=False, root=root)


def broadcast_async(tensor: torch.Tensor, *args: Any, **options: Any) -> Entry:
    """As broadcast_async_(), into a new tensor."""
    return broadcast_async_(tensor, *args, **options, _output=torch.empty_like(tensor))


def broadcast_(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
    return synchronize(broadcast_async_(tensor, *args, **options))


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Copy the root's tensor to all ranks; the gradient is the root's, of all ranks."""

    def run(sent: Any) -> Entry:
        return broadcast_async(sent[0], root_rank, name, process_set)

    def back(gradient: torch.Tensor) -> Any:
        return [allreduce(gradient, op=Sum, process_set=process_set) * (rank() == root_rank)]

    return _apply(run, back, [tensor])[0]


def alltoall_async(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Entry:  # fmt: skip
    """Start to send rows to each rank: splits[r] to rank r, without splits as many to each.

    With splits the result is a pair: the tensor, and how many rows came from each rank.
    """
    n, rows = process_set.size(), tensor.shape[0] if tensor.dim() else 0
    numbers = [rows // n] * n if splits is None else torch.as_tensor(splits).tolist()
    if len(numbers) != n or sum(numbers) != rows or min(numbers) < 0:
        raise ValueError(f"{rows} rows cannot be split over {n} ranks as {numbers}")
    entry = _submit("alltoall", [tensor], (), name, process_set, extra=numbers)
    entry.is_list = splits is not None
    return entry


def alltoall(
    tensor: torch.Tensor, splits: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Send rows to each rank, as alltoall_async(); the gradient goes back the same way."""

    def run(sent: Any) -> Entry:
        return alltoall_async(sent[0], splits, name, process_set)

    def back(gradient: torch.Tensor, _: Any) -> Any:
        return [alltoall(gradient, received, process_set=process_set)[0]]

    output, received = _Differentiable.apply(run, back, tensor)
    return output if splits is None else (output, received)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until every rank has come here."""
    synchronize(_submit("barrier", (), (), None, process_set))


def join(device: int = -1) -> int:
    """Wait until all ranks have called this, and return the last one that did.

    Meanwhile this rank adds zeros to what the others reduce, and no rows to what they gather.
    """
    return global_process_set._coordinator_of_rank().join()
