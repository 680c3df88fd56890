# SPDX-License-Identifier: BSD-3-Clause
"""What the functions of all frameworks share."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from ._coordinator import Entry, Signature
from ._processes import ProcessSet

try:
    import cloudpickle

    dumps = cloudpickle.dumps  # it takes functions and classes of the program, too
except ImportError:
    dumps = pickle.dumps

Average, Sum, Adasum, Min, Max, Product = range(6)
_REDUCTIONS = ("avg", "sum", "adasum", "min", "max", "prod")


def op_of(op: int | None, average: bool | None) -> int:
    if op is not None and average is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    if op is None:
        return Sum if average is False else Average
    return op


def submit(
    of: Any, operation: str, inputs: Sequence[Any], outputs: Sequence[Any], name: str | None,
    process_set: ProcessSet, op: int | None = None, extra: Any = None, is_list: bool = True,
    **fields: Any,
) -> Entry:  # fmt: skip
    """Submit an operation on tensors that the module `of` handles."""
    coordinator = process_set._coordinator_of_rank()
    reduction = "" if op is None else _REDUCTIONS[op]
    for tensor in inputs:
        why = of.can_carry(tensor, operation, reduction)
        if not tensor.shape and operation in ("allgather", "alltoall", "reducescatter"):
            why = f"{operation} takes tensors of at least one dimension"
        if why:
            raise ValueError(why)
    n_ranks = coordinator.comm.size
    if reduction == "adasum" and n_ranks & (n_ranks - 1):
        raise NotImplementedError(
            "Running Adasum with non-power of 2 ranks is not supported yet: there are "
            f"{n_ranks} ranks"
        )
    has_rows = operation in ("allgather", "alltoall")  # the first dimension may differ
    device, event = of.place_of(inputs)
    signature = Signature(
        f"{operation}.{name or f'noname.{next(process_set._numbers)}'}",
        operation,
        reduction,
        tuple([tensor.dtype for tensor in inputs]),
        tuple([tuple(tensor.shape[has_rows:]) for tensor in inputs]),
        device,
        **fields,
    )
    entry = Entry(signature, inputs, outputs, extra)
    entry.is_list, entry.event = is_list, event
    return coordinator.submit(entry)
