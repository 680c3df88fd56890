# SPDX-License-Identifier: BSD-3-Clause
"""An optimizer whose gradients are those of all ranks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ._common import Adasum, Average
from ._processes import ProcessSet, global_process_set
from .compression import Compression
from .functions import broadcast_object
from .ops import allreduce_async_, grouped_allreduce_async_, sparse_allreduce_async, synchronize

Group = tuple[torch.nn.Parameter, ...]


class _Distributed:
    """What DistributedOptimizer() puts before the class of an optimizer.

    Gradients are reduced in groups, most of one parameter.  A group is submitted when all
    its gradients are there, while the backward pass computes others.
    """

    param_groups: list[dict[str, Any]]

    def _begin(
        self, names: dict[Any, str], groups: list[Group], compression: Any, passes: int, op: int,
        factor: float, sparse_as_dense: bool, process_set: ProcessSet,
    ) -> None:  # fmt: skip
        self._names, self._compression, self._op = names, compression, op
        self._sparse_as_dense, self._set = sparse_as_dense, process_set
        self._scales = {"prescale_factor": 1 / factor, "postscale_factor": factor}
        self._groups = {p: group for group in groups for p in group}
        self._handles: dict[Group, Any] = {}
        self._is_synchronized, self._synchronizes = False, True
        self.set_backward_passes_per_step(passes)
        self._is_member = process_set.included()
        if op != Adasum and self._is_member:
            # the nodes that add up gradients call the hooks as long as they live
            self._nodes = [p.expand_as(p).grad_fn.next_functions[0][0] for p in self._groups]
            for p, node in zip(self._groups, self._nodes):
                node.register_hook(self._hook_of(p))

    @property
    def _is_alone(self) -> bool:
        """Say so as long as nobody else takes part: elastic programs may grow."""
        return not self._is_member or len(self._set.ranks or ()) == 1

    def set_backward_passes_per_step(self, passes: int) -> None:
        self.backward_passes_per_step = passes
        self._passes_left = dict.fromkeys(self._groups, passes)

    def _hook_of(self, p: Any) -> Any:
        def hook(*_: Any) -> None:
            if self._is_alone:
                return
            group = self._groups[p]
            if group in self._handles or self._passes_left[p] <= 0:
                raise AssertionError(
                    "Gradients were computed more than backward_passes_per_step times before "
                    "call to step(). Increase backward_passes_per_step to accumulate gradients "
                    "locally."
                )
            self._passes_left[p] -= 1
            if not any(self._passes_left[other] for other in group):
                self._submit(group)

        return hook

    def _submit(self, group: Group) -> None:
        for p in group:
            if p.grad is None:  # other ranks may have computed it
                p.grad = torch.zeros_like(p)
            if p.grad.is_sparse and (self._sparse_as_dense or len(group) > 1):
                p.grad = p.grad.to_dense()
        name = self._names[group[0]]
        if group[0].grad.is_sparse:
            handle = sparse_allreduce_async(group[0].grad, name, self._op, self._set)
            self._handles[group] = lambda: [handle()], [None]
            return
        sent, contexts = zip(*(self._compression.compress(p.grad) for p in group))
        options = {"name": name, "op": self._op, "process_set": self._set, **self._scales}
        self._handles[group] = grouped_allreduce_async_(sent, **options), contexts

    def synchronize(self) -> None:
        """Wait until the gradients are those of all ranks."""
        if self._op != Adasum and not self._is_alone:
            for group in dict.fromkeys(self._groups.values()):
                if group not in self._handles:
                    self._submit(group)
        try:
            for group, (handle, contexts) in self._handles.items():
                for p, output, context in zip(group, synchronize(handle), contexts):
                    p.grad = self._decompressed(output, context)
        finally:
            self._handles.clear()
            self.set_backward_passes_per_step(self.backward_passes_per_step)
        self._is_synchronized = True

    def _decompressed(self, output: torch.Tensor, context: Any) -> torch.Tensor:
        return output if output.is_sparse else self._compression.decompress(output, context)

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Let step() not wait: the caller has called synchronize()."""
        self._synchronizes = False
        try:
            yield
        finally:
            self._synchronizes = True

    def step(self, closure: Any = None) -> Any:
        if self._op == Adasum and not self._is_alone:
            return self._step_by_adasum(closure)
        if self._synchronizes:
            if self._is_synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after "
                    "optimizer.synchronize(). This can cause training slowdown. You may want to "
                    "consider using optimizer.skip_synchronize() context if you use "
                    "optimizer.synchronize() in your code.", stacklevel=2,
                )  # fmt: skip
            self.synchronize()
        self._is_synchronized = False
        return super().step(closure)  # type: ignore[misc]

    def _step_by_adasum(self, closure: Any) -> Any:
        """Each rank steps by its own gradients; Adasum combines how far the ranks went."""
        begins = {p: p.detach().clone() for p in self._groups}
        loss = super().step(closure)  # type: ignore[misc]
        handles = []
        for p, begin in begins.items():
            sent, context = self._compression.compress(p.detach() - begin)
            options = {"name": self._names[p], "op": Adasum, "process_set": self._set}
            handles.append((p, context, allreduce_async_(sent, **options)))
        for p, context, handle in handles:
            p.data.copy_(begins[p] + self._decompressed(synchronize(handle), context))
        return loss

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        if self._handles:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before "
                "optimizer.step() or optimizer.synchronize(). This is prohibited as it can cause "
                "a race condition."
            )
        super().zero_grad(*arguments, **options)  # type: ignore[misc]

    def load_state_dict(self, state: Any) -> None:
        self._handles.clear()
        self._is_synchronized, self._synchronizes = False, True
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        super().load_state_dict(state)  # type: ignore[misc]


def _names_of(optimizer: Any, named_parameters: Iterable[Any] | None) -> dict[Any, str]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if named_parameters is None:
        return {p: f"noname.{n}" for n, p in enumerate(parameters)}
    pairs = list(named_parameters)
    if not all(isinstance(pair, tuple) for pair in pairs):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), "
                         "usually produced by model.named_parameters().")  # fmt: skip
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: "
                         + ", ".join(twice))  # fmt: skip
    named = {p: name for name, p in pairs}
    missing = [str(tuple(p.shape)) for p in parameters if p not in named]
    if missing:
        raise ValueError("named_parameters was specified, but one or more model parameters were "
                         f"not named. Their shapes: {', '.join(missing)}")  # fmt: skip
    return named


def _groups_of(
    optimizer: Any, names: dict[Any, str], groups: int | Sequence[Any] | None, on: ProcessSet
) -> list[Group]:
    """Return parameters that are reduced together; a number of groups is split evenly."""
    wanted = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
    if isinstance(groups, int) and groups > 0 and on.included():
        order = broadcast_object([names[p] for p in wanted], on._members()[0], "groups", on)
        place = {name: n for n, name in enumerate(order)}
        wanted.sort(key=lambda p: place[names[p]])
        size, more = divmod(len(wanted), groups)
        ends = [size * n + min(n, more) for n in range(groups + 1)]
        return [tuple(wanted[a:b]) for a, b in zip(ends, ends[1:]) if a < b]
    given = [] if isinstance(groups, int) else [tuple(group) for group in groups or ()]
    grouped = {p for group in given for p in group}
    return given + [(p,) for p in wanted if p not in grouped]


def DistributedOptimizer(
    optimizer: Any, named_parameters: Iterable[Any] | None = None,
    compression: Any = None, backward_passes_per_step: int = 1, op: int = Average,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
    sparse_as_dense: bool = False, process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Return an optimizer of the same class whose step() uses the gradients of all ranks.

    The gradients are reduced while the backward pass still computes; step() waits for them.
    """
    if gradient_predivide_factor != 1 and op != Average:
        raise ValueError("gradient_predivide_factor not supported unless op is set to Average")
    names = _names_of(optimizer, named_parameters)
    parts = _groups_of(optimizer, names, groups or num_groups, process_set)
    kind: Any = type(type(optimizer).__name__, (_Distributed, type(optimizer)), {})
    result = kind.__new__(kind)
    # a scheduler may have put its own step() into the given optimizer
    result.__dict__.update((k, v) for k, v in vars(optimizer).items() if k != "step")
    result._begin(names, parts, compression or Compression.none, backward_passes_per_step, op,
                  gradient_predivide_factor, sparse_as_dense, process_set)  # fmt: skip
    return result
