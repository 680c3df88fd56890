# SPDX-License-Identifier: BSD-3-Clause
"""Broadcast of models and optimizers; objects."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from ._common import dumps
from ._processes import ProcessSet, global_process_set, rank
from .ops import allgather, broadcast_, broadcast_async_, synchronize


def broadcast_parameters(
    params: Any, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Copy the root's tensors: a state_dict(), or named_parameters() or parameters()."""
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif hasattr(params, "__iter__"):
        pairs = [p if isinstance(p, tuple) else (None, p) for p in params]
    else:
        raise ValueError(f"invalid params of type: {type(params)}")
    handles = [
        broadcast_async_(tensor, root_rank, name and f"parameters.{name}", process_set)
        for name, tensor in pairs if isinstance(tensor, torch.Tensor)
    ]  # fmt: skip
    for handle in handles:
        synchronize(handle)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Return the root's object on all ranks."""
    name, is_root = name or "object", rank() == root_rank
    data = bytearray(dumps(obj) if is_root else b"")
    length = broadcast_(torch.tensor([len(data)]), root_rank, name + ".length", process_set)
    data = data or bytearray(int(length))
    tensor = torch.frombuffer(data, dtype=torch.uint8)
    broadcast_(tensor, root_rank, name + ".bytes", process_set)
    return obj if is_root else pickle.loads(data)


def allgather_object(
    obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Return the objects of all ranks."""
    name, data = name or "object", bytearray(dumps(obj))
    lengths = allgather(torch.tensor([len(data)]), name + ".length", process_set)
    tensor = torch.frombuffer(data, dtype=torch.uint8)
    gathered = allgather(tensor, name + ".bytes", process_set)
    return [pickle.loads(part.numpy().data) for part in gathered.split(lengths.tolist())]


def broadcast_optimizer_state(optimizer: Any, root_rank: int, model: Any = None) -> None:
    """Give the optimizers of all ranks the state and the options of the root's."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    data = broadcast_object(file.getvalue(), root_rank, "optimizer_state")
    if rank() != root_rank:
        optimizer.load_state_dict(torch.load(io.BytesIO(data), map_location="cpu"))
