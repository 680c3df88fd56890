# SPDX-License-Identifier: BSD-3-Clause
"""Training that goes on when ranks die and when others come: the names of
horovod.torch.elastic.  doc/elastic.md describes them."""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Iterable, Iterator
from functools import wraps
from itertools import cycle, islice
from typing import Any, Callable

import torch

from ._coordinator import HorovodInternalError, HostsUpdatedInterrupt, log
from ._processes import newcomers, rank, reset, size
from .functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters

__all__ = ["ElasticSampler", "HorovodInternalError", "HostUpdateResult", "HostsUpdatedInterrupt"]
__all__ += ["ObjectState", "State", "TorchState", "run"]


class HostUpdateResult:
    """What on_hosts_updated() is told."""

    no_update, removed, added, mixed = range(4)


class State:
    """What the ranks have in common, and go back to when one of them dies."""

    def __init__(
        self, bcast_object: Callable[..., Any] = broadcast_object,
        get_rank: Callable[[], int] = rank,
    ) -> None:  # fmt: skip
        self._bcast_object, self._get_rank = bcast_object, get_rank
        self._reset_callbacks: list[Callable[[], Any]] = []
        self._updates = HostUpdateResult.no_update

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Call these when the ranks have changed, before sync()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self._updates = HostUpdateResult.no_update
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Note that ranks can be added, or are to go.  What rank 0 has noted counts."""
        self._updates |= update_res

    def commit(self) -> None:
        """Save the state, and look for newcomers."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raise HostsUpdatedInterrupt on all ranks if newcomers wait."""
        if self._get_rank() == 0 and newcomers():
            self.on_hosts_updated(time.time(), HostUpdateResult.added)
        updates = self._bcast_object(self._updates)
        if updates:
            raise HostsUpdatedInterrupt(updates == HostUpdateResult.removed)

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to what save() has saved."""
        raise NotImplementedError

    def sync(self) -> None:
        """Give all ranks the state of rank 0."""
        raise NotImplementedError

    def reset(self) -> None:
        """What a class has to do when the ranks have changed, before sync()."""


def _state_of(value: Any) -> Any:
    return value.state_dict() if hasattr(value, "load_state_dict") else value


class ObjectState(State):
    """The attributes that are passed.  Of what has a state_dict(), that is the state."""

    def __init__(
        self, bcast_object: Callable[..., Any] = broadcast_object,
        get_rank: Callable[[], int] = rank, **attributes: Any,
    ) -> None:  # fmt: skip
        super().__init__(bcast_object, get_rank)
        vars(self).update(attributes)
        self._names = list(attributes)
        self.save()

    def save(self) -> None:
        # a load_state_dict() may keep what it gets: it gets copies
        self._saved = {n: copy.deepcopy(_state_of(getattr(self, n))) for n in self._names}

    def restore(self) -> None:
        self._load(copy.deepcopy(self._saved))

    def _load(self, states: dict[str, Any]) -> None:
        for name, state in states.items():
            value = getattr(self, name)
            if hasattr(value, "load_state_dict"):
                value.load_state_dict(state)
            else:
                setattr(self, name, state)

    def sync(self) -> None:
        others = {}
        for name in self._names:
            value = getattr(self, name)
            if isinstance(value, torch.nn.Module):
                broadcast_parameters(value.state_dict(), 0)
            elif isinstance(value, torch.optim.Optimizer):
                broadcast_optimizer_state(value, 0)
            else:
                others[name] = _state_of(value)
        self._load(self._bcast_object(others))
        self.save()


class TorchState(ObjectState):
    """A model, its optimizer, and anything else by its name."""

    def __init__(self, model: Any = None, optimizer: Any = None, **attributes: Any) -> None:
        super().__init__(model=model, optimizer=optimizer, **attributes)


class ElasticSampler(torch.utils.data.Sampler):  # type: ignore[misc]
    """Divides the indices of a data set among the ranks, and what is left of them anew.

    The ranks process one order from its front, in turns.  record_batch() follows each batch,
    and set_epoch() each epoch.  It belongs to the attributes of a TorchState.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0  # the latter counts those of all ranks
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Note that each rank has processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.processed_num = state["epoch"], state["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Divide what is left among the ranks that there are now."""
        self.num_replicas, self.rank = size(), rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        # each rank has the same number: the last ones have some of the first again
        return islice(cycle(self.remaining_indices), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of a State survive: when ranks die or come, it begins again.

    After a failure the state is that of the last commit.
    """

    @wraps(func)
    def wrapper(state: State, *arguments: Any, **options: Any) -> Any:
        while True:
            try:
                state.sync()
                return func(state, *arguments, **options)
            except HorovodInternalError as error:
                why, has_failed = str(error), True
                state.restore()
            except HostsUpdatedInterrupt as interrupt:
                why, has_failed = str(interrupt), False
            before = size()
            reset(why if has_failed else None)
            if rank() == 0:
                log.warning("going on with %d ranks, formerly %d: %s", size(), before, why)
            state.on_reset()

    return wrapper
