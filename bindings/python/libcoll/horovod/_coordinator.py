# SPDX-License-Identifier: BSD-3-Clause
"""The agreement of all ranks on which operations are ready, and in which order.

Ranks submit operations in different orders; what belongs together has the same name.  A
thread of the process works in cycles while operations are pending:

1. A bit stands for each signature that the ranks have agreed on before.  One allreduce
   (band) of bits says what every rank has submitted.
2. If a rank has a signature without a bit, a flag beside the bits says so, and all ranks
   exchange their new signatures.  An operation that every rank has announced gets a bit,
   or an error if the signatures differ.
3. What is ready is carried out, in the order of the bits.

Bits are given and taken by exchanges alone, so they mean the same on all ranks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import threading
import time
from array import array
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Optional

from ..comm import Communicator
from ..errors import Error

log = logging.getLogger("horovod")

FOREVER = 1e9  # seconds; the largest timeout of libcoll
_NO_NEWS, _NO_STALL, _NO_END, _N_FLAGS = 1, 2, 4, 3
_WITH_JOIN = ("allreduce", "allgather", "barrier")
_SHUT_DOWN = (
    "Horovod has been shut down. This was caused by an exception on one of the ranks or an "
    "attempt to use Horovod after one of the ranks finished execution."
)


class HorovodInternalError(RuntimeError):
    """An operation failed: the ranks disagree about it, or one of them has gone."""


class HostsUpdatedInterrupt(RuntimeError):
    """Ranks can be added, or are to go; nothing has failed."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts have been updated")
        self.skip_sync = skip_sync


class Signature(NamedTuple):
    """What must be equal on all ranks."""

    name: str
    operation: str
    reduction: str = ""
    types: tuple[Hashable, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    device: str = "cpu"
    root: int = 0
    scale: tuple[float, float] = (1.0, 1.0)


class Entry:
    """An operation that this rank has submitted.  It is what Horovod calls a handle."""

    __slots__ = (
        *("coordinator", "error", "event", "extra", "inputs", "is_done", "is_list", "outputs"),
        *("signature", "since"),
    )

    def __init__(
        self, signature: Signature, inputs: Any = (), outputs: Any = (), extra: Any = None
    ) -> None:
        self.signature, self.inputs, self.outputs, self.extra = signature, inputs, outputs, extra
        self.is_done = self.is_list = False
        self.event: Any = None  # of the GPU: the inputs are there
        self.error: str | None = None
        self.since = time.monotonic()
        self.coordinator: Coordinator


Batch = list[tuple[Signature, Optional[Entry]]]


class Settings(NamedTuple):
    """Those of rank 0 count."""

    cycle: float  # seconds between two cycles while nobody waits
    fusion: int  # bytes
    capacity: int  # signatures that have bits
    stall: float  # seconds after which a warning says who is missing
    stall_end: float  # seconds after which everything fails

    @classmethod
    def from_env(cls) -> Settings:
        def number(name: str, default: float) -> float:
            return float(os.environ.get("HOROVOD_" + name) or default)

        stall = number("STALL_CHECK_TIME_SECONDS", 60)
        return cls(
            number("CYCLE_TIME", 1) / 1e3,
            int(number("FUSION_THRESHOLD", 128 << 20)),
            int(number("CACHE_CAPACITY", 1024)),
            FOREVER if number("STALL_CHECK_DISABLE", 0) or not stall else stall,
            number("STALL_SHUTDOWN_TIME_SECONDS", 0) or FOREVER,
        )


def exchange(comm: Communicator, thing: Any) -> list[Any]:
    """Return what each rank has passed."""
    given, lengths = pickle.dumps(thing), array("Q", bytes(8 * comm.size))
    comm.allgather(array("Q", [len(given)]), lengths)
    gathered = memoryview(bytearray(sum(lengths)))
    comm.allgather(given, gathered, list(lengths))
    ends = [sum(lengths[: rank + 1]) for rank in range(comm.size)]
    return [pickle.loads(gathered[end - n : end]) for end, n in zip(ends, lengths)]


def _ones(bits: int) -> list[int]:
    return [n for n, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]


class Coordinator:
    """The operations of a group of ranks, and the thread that carries them out."""

    def __init__(
        self, comm: Communicator, settings: Settings,
        carry_out: Callable[[Communicator, Batch], None],
        watch: Callable[[Batch, float], None],
    ) -> None:  # fmt: skip
        self.comm, self.settings = comm, settings
        self._limit = min(settings.stall, settings.stall_end)
        self._carry_out, self._watch = carry_out, watch
        # shared with the callers
        self._lock = threading.RLock()
        self._news, self._done = threading.Condition(self._lock), threading.Condition(self._lock)
        self._pending: dict[str, Entry] = {}
        self._has_fresh = False  # entries that are in no cycle yet
        self._bits = 0  # of the pending entries
        self._new: list[Entry] = []  # pending, to be announced
        self._slot_of: dict[Signature, int] = {}
        self._announced: dict[str, dict[int, Signature]] = {}
        self._join: Entry | None = None
        self._n_waiting, self._is_ending = 0, False
        self._failure: str | None = None
        # the thread's own
        self._slots: list[Signature] = []
        self._next_slot = 0
        self._last: tuple[int, list[Signature]] = 0, []  # bits that were ready, and what has them
        self._joined: list[int] = []  # ranks, in the order in which they did
        self._vector = bytearray()
        self._request: Any = None
        self._due = self._next_report = 0.0
        self._was_ready = False
        self._thread = threading.Thread(target=self._run, name="horovod", daemon=True)
        self._thread.start()

    # ---- for callers --------------------------------------------------------

    def submit(self, entry: Entry) -> Entry:
        name, entry.coordinator = entry.signature.name, self
        with self._lock:
            if self._failure:
                raise HorovodInternalError(self._failure)
            if name in self._pending:
                raise HorovodInternalError(
                    f"Requested to {entry.signature.operation} a tensor with the same name as "
                    f"another tensor that is currently being processed ({name}). If you want to "
                    "request another tensor, use a different tensor name."
                )
            self._pending[name] = entry
            slot = self._slot_of.get(entry.signature)
            if slot is None or name in self._announced:
                self._new.append(entry)
            else:
                self._bits |= 1 << slot
            self._has_fresh = True
            if self._n_waiting or len(self._pending) == 1:  # otherwise the thread is due anyway
                self._news.notify()
        return entry

    def wait(self, entry: Entry) -> Any:
        if not entry.is_done:
            with self._lock:
                self._n_waiting += 1
                self._news.notify()
                try:
                    self._done.wait_for(lambda: entry.is_done)
                finally:
                    self._n_waiting -= 1
        if entry.error is not None:
            raise HorovodInternalError(entry.error)
        return entry.outputs if entry.is_list or not entry.outputs else entry.outputs[0]

    def join(self) -> int:
        """Take part in the operations of the others until all ranks have come here."""
        entry = Entry(Signature("join", "join"))
        with self._lock:
            if self._failure:
                raise HorovodInternalError(self._failure)
            self._join = entry
        return int(self.wait(entry))

    def stop(self, why: str | None = None) -> None:
        """End all operations when all ranks take part; with a reason, at once."""
        if why is not None:  # before the others can hear of an end without a reason
            self.comm.abort(why)
        with self._lock:
            self._is_ending = True
            self._news.notify()

    def end(self) -> Communicator:
        """Wait until stop() has had its effect; the communicator is the caller's then."""
        self._thread.join()
        self._request = None
        return self.comm

    def close(self) -> None:
        with contextlib.suppress(Error):  # who waited has got the error
            self.end().close()

    # ---- the thread ---------------------------------------------------------

    def _run(self) -> None:
        why = _SHUT_DOWN
        try:
            self._pause()
            while self._cycle():
                self._pause()
        except Exception as error:
            why = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            with contextlib.suppress(Error):
                self.comm.abort(why)
        with self._lock:
            self._failure = why
            entries = [*self._pending.values(), *([self._join] if self._join else [])]
        self._end([(entry.signature, entry) for entry in entries], why)

    def _pause(self) -> None:
        """Sleep until there is something to agree on.

        Whoever waits for new entries wants a cycle now.  Otherwise more entries may come
        meanwhile, to be carried out together.
        """
        if self.comm.rank in self._joined:
            return
        # A rank without entries takes part now and then: reports of stalls need all ranks.
        until = time.monotonic() + min(self._limit / 2, 30)
        with self._lock:
            while not (self._pending or self._join or self._is_ending):
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._news.wait(left)
                self._due = time.monotonic() + self.settings.cycle
            while not self._is_ending and not (
                self._n_waiting and (self._has_fresh or self._was_ready or self._join)
            ):
                left = self._due - time.monotonic()
                if left <= 0:
                    break
                self._news.wait(left)
        self._due = time.monotonic() + self.settings.cycle

    def _cycle(self) -> bool:
        """Agree with the other ranks, and carry out what is ready; return False at the end."""
        with self._lock:
            joins = self._join is not None and self.comm.rank not in self._joined
            flags = 0 if self._is_ending else _NO_END
            flags |= 0 if self._new or joins else _NO_NEWS
            bits, self._has_fresh = self._bits, False
        flags |= 0 if self._is_stalled() else _NO_STALL
        if self.comm.rank in self._joined:
            bits = (1 << len(self._slots)) - 1
        common = self._agree(bits << _N_FLAGS | flags)
        if not common & _NO_END:
            return False
        ready = common >> _N_FLAGS
        with self._lock:
            self._bits &= ~ready
        if ready != self._last[0]:
            self._last = ready, [self._slots[n] for n in _ones(ready)]
        batch = self._batch(self._last[1], bool(self._joined))
        if not common & _NO_NEWS:
            batch += self._exchange_news(joins)
        if not common & _NO_STALL:
            self._report()
        self._was_ready = bool(batch)
        if batch:
            begun = time.monotonic()
            self._carry_out(self.comm, batch)
            self._watch(batch, begun)
            self._end(batch)
        return True

    def _agree(self, bits: int) -> int:
        """Return the bits that all ranks have set."""
        length = 16 * (1 + (len(self._slots) + _N_FLAGS) // 128)
        if length != len(self._vector):
            self._vector = bytearray(length)
            self._request = self.comm.prepare.allreduce(self._vector, "band")
        self._vector[:] = bits.to_bytes(length, "little")
        self._request.start().wait()
        return int.from_bytes(self._vector, "little")

    def _batch(self, signatures: list[Signature], is_partial: bool) -> Batch:
        """Return signatures that are ready with this rank's entries.

        They are partial if a rank that has joined may lack them.
        """
        pending = self._pending
        if not is_partial:
            return [(signature, pending[signature.name]) for signature in signatures]
        batch: Batch = []
        for signature in signatures:
            entry = pending.get(signature.name)
            if entry is not None and entry.signature != signature:
                entry = None  # this rank has joined; its own operation waits for others
            if signature.operation in _WITH_JOIN:
                batch.append((signature, entry))
            else:
                why = f"{signature.operation} is not supported with Join at this time."
                self._end([(signature, entry)], why)
        return batch

    def _exchange_news(self, joins: bool) -> Batch:
        """Exchange new signatures; return those that all ranks have announced now."""
        with self._lock:
            mine, self._new = [entry.signature for entry in self._new], []
        news = exchange(self.comm, (joins, mine))
        with self._lock:
            return self._take_news(news)

    def _take_news(self, news: list[tuple[bool, list[Signature]]]) -> Batch:
        for rank, (joined, signatures) in enumerate(news):
            if joined:
                self._joined.append(rank)
            for signature in signatures:
                self._announced.setdefault(signature.name, {})[rank] = signature
        self._announce_disputed()
        batch: Batch = []
        for name, by_rank in list(self._announced.items()):
            if len({*by_rank, *self._joined}) == self.comm.size:
                del self._announced[name]
                first = min(by_rank)
                other = next((r for r in by_rank if by_rank[r] != by_rank[first]), None)
                if other is None:
                    self._give_slot(by_rank[first])
                    batch += self._batch([by_rank[first]], len(by_rank) < self.comm.size)
                elif name in self._pending:
                    why = _difference(first, by_rank[first], other, by_rank[other])
                    self._end([(by_rank[first], self._pending[name])], why)
        if len(self._joined) == self.comm.size and self._join:
            entry, self._join = self._join, None
            entry.outputs = [self._joined[-1]]
            self._joined = []
            self._end([(entry.signature, entry)])
        return batch

    def _announce_disputed(self) -> None:
        """Announce what has a bit here, and was announced with another signature elsewhere."""
        for slot in _ones(self._bits):
            if self._slots[slot].name in self._announced:
                self._to_news(slot)

    def _to_news(self, slot: int) -> None:
        self._bits &= ~(1 << slot)
        self._new.append(self._pending[self._slots[slot].name])

    def _give_slot(self, signature: Signature) -> None:
        """Give a signature a bit; if there are no more, the oldest one loses its own."""
        if signature in self._slot_of or not self.settings.capacity:
            return
        slot = self._next_slot % self.settings.capacity
        if slot < len(self._slots):
            if self._bits >> slot & 1:
                self._to_news(slot)
            del self._slot_of[self._slots[slot]]
            self._slots[slot] = signature
            self._last = 0, []
        else:
            self._slots.append(signature)
        self._slot_of[signature] = slot
        self._next_slot = slot + 1

    def _end(self, batch: Batch, why: str | None = None) -> None:
        with self._lock:
            for signature, entry in batch:
                if entry is not None:
                    self._pending.pop(signature.name, None)
                    entry.error, entry.is_done = why, True
            self._done.notify_all()

    # ---- stalls -------------------------------------------------------------

    def _is_stalled(self) -> bool:
        now = time.monotonic()
        if now < self._next_report:
            return False
        self._next_report = now + min(1, self._limit / 4)
        with self._lock:
            return any(now - entry.since > self._limit for entry in self._pending.values())

    def _report(self) -> None:
        """Say which ranks have not submitted what others have waited for."""
        now = time.monotonic()
        self._next_report = now + self.settings.stall
        with self._lock:
            ages = {name: now - entry.since for name, entry in self._pending.items()}
        of_ranks = exchange(self.comm, ages)
        stalled = {
            name for ages in of_ranks for name, age in ages.items() if age > self.settings.stall
        }
        missing = [
            f"{rank}: [{', '.join(sorted(names))}]" for rank, ages in enumerate(of_ranks)
            if rank not in self._joined and (names := stalled - ages.keys())
        ]  # fmt: skip
        if self.comm.rank == 0 and missing:
            log.warning(
                "One or more tensors were submitted to be reduced, gathered or broadcasted by "
                "subset of ranks and are waiting for remainder of ranks for more than %g seconds. "
                "This may indicate that different ranks are trying to submit different tensors or "
                "that only subset of ranks is submitting tensors, which will cause deadlock.\n"
                "Missing ranks:\n%s", self.settings.stall, "\n".join(missing),
            )  # fmt: skip
        if any(age > self.settings.stall_end for ages in of_ranks for age in ages.values()):
            raise HorovodInternalError(
                f"Operations have waited longer than {self.settings.stall_end:g} seconds "
                f"(HOROVOD_STALL_SHUTDOWN_TIME_SECONDS). Missing ranks: {', '.join(missing)}"
            )


def _difference(rank: int, one: Signature, other_rank: int, other: Signature) -> str:
    """Say in which field two signatures differ first."""
    field, a, b = next(x for x in zip(one._fields, one, other) if x[1] != x[2])
    return (
        f"Mismatched {field} of {one.name}: One rank ({rank}) has {a}, but another rank "
        f"({other_rank}) has {b}."
    )
