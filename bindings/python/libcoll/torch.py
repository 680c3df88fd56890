# SPDX-License-Identifier: BSD-3-Clause
"""The backend "coll" of torch.distributed.

    import libcoll.torch  # not needed where the package is installed and torch is new
    torch.distributed.init_process_group("coll")

One class has the operations, by the names that versions of torch from 1.13 on look up.
A process group inherits it, so that Python calls it at once; where torch can take a
Backend written in Python, the group also has one, for what C++ asks of backends.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import blake2b
from typing import Any

import torch
import torch.distributed as dist
from libcoll_torch import DEVICES, register
from torch._C import _distributed_c10d as c10d

from ._buffers import Buffer
from ._calls import ANY, Status
from ._tensors import counts_of, numbers, reduction_of, span, spread, units
from ._torch_work import Engine, Failure, Work, seconds
from .comm import Communicator
from .errors import Error, InvalidError, UnsupportedError
from .ops import Op
from .process import handle, unique_id

_KEY = "libcoll"  # of the id in the group's store

_OPS = {"SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max"}
_OPS.update({"BAND": "band", "BOR": "bor", "BXOR": "bxor"})


def _op(op: Any, tensor: torch.Tensor) -> str | Op:
    """Return the reduction that an operation of torch means, for a tensor."""
    for name, ours in _OPS.items():
        if op is None or op == getattr(dist.ReduceOp, name, "?"):
            return reduction_of("sum" if op is None else ours, tensor)
    if hasattr(dist.ReduceOp, "PREMUL_SUM") and op == dist.ReduceOp.PREMUL_SUM:
        factor = torch.as_tensor(op.__getstate__()[1], dtype=tensor.dtype)
        return Op.premul(span([factor]))
    raise TypeError(f"libcoll has no reduction {op}: use one of {', '.join(_OPS)}")


def _list(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _splits(tensor: torch.Tensor, splits: Sequence[int], size: int) -> list[int]:
    """Return as elements what torch counts in rows."""
    if not splits:
        rows, rest = divmod(tensor.shape[0], size)
        if rest:
            raise ValueError(f"{tensor.shape[0]} rows cannot be split over {size} ranks")
        splits = [rows] * size
    if len(splits) != size or sum(splits) != tensor.shape[0]:
        raise ValueError(f"{list(splits)} does not split {tensor.shape[0]} rows over {size} ranks")
    row = units(tensor) // max(tensor.shape[0], 1)
    return [n * row for n in splits]


def _call(view: Any, name: str, *arguments: Any, **options: Any) -> Any:
    if arguments and isinstance(arguments[-1], dict):
        *arguments, more = arguments  # type: ignore[assignment]
        options.update(more)
    return getattr(view, name)(*arguments, **options)


@contextmanager
def _in_words() -> Any:
    """Raise as torch does what ends a group; what is wrong with a call stays as it is."""
    try:
        yield
    except (InvalidError, UnsupportedError):
        raise
    except Error as error:
        raise Failure(f"libcoll: {error}") from error


class Operations:
    """The operations by their names in torch: those of 1.13, and as aliases later ones.

    `opts` is the structure of options of an operation; in some forms it is the reduction
    or the root itself.
    """

    _engine: Engine
    _coalesced: list[Any] | None = None
    _number = 0

    def getBackendName(self) -> str:
        return "coll"

    # ---- how they start -----------------------------------------------------

    def _start(
        self, opts: Any, outputs: Any, calls: Sequence[tuple[Any, ...]],
        finish: Sequence[Any] = (), status: Status | None = None,
    ) -> Any:  # fmt: skip
        """Start calls, each a name with the arguments of libcoll's operation.

        The last one may be a dictionary, of those that have names.
        """
        self._number += 1
        timeout = seconds(getattr(opts, "timeout", None)) or self._engine.limit
        buffers = [b for _, *rest in calls for b in rest if isinstance(b, Buffer)]
        with _in_words(), self._engine.lock:
            if buffers and not buffers[0].is_host:
                work = self._on_stream(outputs, calls, finish, buffers)
            else:
                view = self._engine.comm.start(background=True)
                requests = [_call(view, *call) for call in calls]
                work = Work(self._engine, requests, outputs, finish, status, timeout)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _on_stream(self, outputs: Any, calls: Sequence[Any], finish: Any, buffers: Any) -> Any:
        """Put calls into a stream of the group's own, between events of the current one."""
        device = buffers[0].array[0].device
        stream = self._engine.stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for call in calls:
                _call(self._engine.comm, *call, stream=stream)
            for tensors, flat in finish:
                spread(flat, tensors)
            future = torch.futures.Future(devices=[device])
            future.set_result(outputs)
        for buffer in buffers:
            for tensor in buffer.array:
                tensor.record_stream(stream)
        return c10d._create_work_from_future(future)

    # ---- the operations ------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        finish: list[Any] = []
        op, tensors = getattr(opts, "reduceOp", opts), _list(tensors)
        calls = [("allreduce", span([numbers(t)], finish), _op(op, t)) for t in tensors]
        return self._start(opts, tensors, calls, finish)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: Any = None) -> Any:
        finish: list[Any] = []
        root, op = getattr(opts, "rootRank", opts), getattr(opts, "reduceOp", op)
        tensors = _list(tensors)
        calls = [("reduce", span([numbers(t)], finish), _op(op, t), root) for t in tensors]
        return self._start(opts, tensors, calls, finish if root == self._engine.comm.rank else ())

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        finish: list[Any] = []
        root, tensors = getattr(opts, "rootRank", opts), _list(tensors)
        is_root = root == self._engine.comm.rank
        calls = [("broadcast", span([t], finish, is_root), root) for t in tensors]
        return self._start(opts, tensors, calls, () if is_root else finish)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """All-gather each input into one tensor, or several that may differ in length."""
        finish: list[Any] = []
        outputs = [outputs] if isinstance(inputs, torch.Tensor) else outputs
        calls = [
            ("allgather", span([given]), span(parts, finish, False), counts_of(parts))
            for given, parts in zip(_list(inputs), map(_list, outputs))
        ]
        return self._start(opts, outputs, calls, finish)

    all_gather_single = all_gather_single_coalesced = allgather_coalesced = allgather
    _allgather_base = allgather_into_tensor_coalesced = allgather

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        finish: list[Any] = []
        root = opts.rootRank
        target = span(outputs[0], finish, False) if root == self._engine.comm.rank else None
        calls = [("gather", span([inputs[0]]), root, target)]
        return self._start(opts, outputs, calls, finish)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        finish: list[Any] = []
        root = opts.rootRank
        source = span(inputs[0]) if root == self._engine.comm.rank else None
        calls = [("scatter", source, root, span([outputs[0]], finish, False))]
        return self._start(opts, outputs, calls, finish)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Reduce tensors; each rank gets a part of one, or one of several, for each output."""
        finish: list[Any] = []
        op = getattr(opts, "reduceOp", None)
        inputs = [inputs] if isinstance(outputs, torch.Tensor) else inputs
        outputs, calls = _list(outputs), []
        for output, given in zip(outputs, inputs):
            parts = [numbers(t) for t in _list(given)]
            target = span([numbers(output)], finish, False)
            counts = counts_of(parts)
            calls.append(("reduce_scatter", span(parts), _op(op, output), target, counts))
        return self._start(opts, outputs, calls, finish)

    reduce_scatter_single = reduce_scatter_single_coalesced = reduce_scatter
    _reduce_scatter_base = reduce_scatter_tensor_coalesced = reduce_scatter

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        finish: list[Any] = []
        counts, out_counts = list(map(units, inputs)), list(map(units, outputs))
        target = span(list(outputs), finish, False)
        calls = [("alltoall", span(list(inputs)), target, counts, out_counts)]
        return self._start(opts, outputs, calls, finish)

    def all_to_all_single(
        self, output: Any, given: Any, out_splits: Any = (), in_splits: Any = (), opts: Any = None
    ) -> Any:
        finish: list[Any] = []
        counts: tuple[Any, ...] = ()
        if out_splits or in_splits:
            size = self._engine.comm.size
            counts = _splits(given, in_splits, size), _splits(output, out_splits, size)
        calls = [("alltoall", span([given]), span([output], finish, False), *counts)]
        return self._start(opts, [output], calls, finish)

    alltoall_base = all_to_all_single

    def send(self, tensors: Any, peer: int, tag: int = 0) -> Any:
        options = {} if tensors[0].is_cuda else {"tag": tag}
        return self._start(None, tensors, [("send", span([tensors[0]]), peer, options)])

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> Any:
        finish: list[Any] = []
        status = Status()
        options = {} if tensors[0].is_cuda else {"tag": tag, "status": status}
        calls = [("recv", span([tensors[0]], finish, False), peer, options)]
        return self._start(None, tensors, calls, finish, status)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self.recv(tensors, ANY, tag)

    def barrier(self, opts: Any = None) -> Any:
        self._engine.synchronize()
        return self._start(opts, [], [("barrier",)])

    def monitored_barrier(self, opts: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier whose error names the ranks that have not come in time."""
        work = self._start(None, [], [("barrier",)])
        work.wait(getattr(opts, "timeout", opts))

    # ---- the group -------------------------------------------------------------

    def rank(self) -> int:
        return self._engine.rank

    def size(self) -> int:
        return self._engine.size

    getRank, getSize = rank, size

    def get_reconfigure_handle(self) -> str:
        """Return what names this group of this process to the reconfigure() of others."""
        return handle().hex() + self._engine.token

    def reconfigure(self, opts: Any) -> Any:
        """Form the group anew of those with opts.handles; a list has them by their ranks.

        The former members that are not among them need not know of it, and may be dead.
        """
        engine, mine = self._engine, self.get_reconfigure_handle()
        handles = opts.handles if isinstance(opts.handles, list) else sorted(opts.handles)
        if opts.uuid in engine.uuids or mine not in handles:
            what = "this group's handle is missing" if mine not in handles else "already used"
            raise RuntimeError(f"reconfigure with uuid {opts.uuid}: {what}")
        engine.uuids.add(opts.uuid)
        digest = blake2b(repr((opts.uuid, handles)).encode(), digest_size=8).digest()
        places = [bytes.fromhex(h)[:-8] for h in handles]
        where = places, handles.index(mine), int.from_bytes(digest, "little")
        with _in_words():
            timeout = seconds(opts.timeout) or engine.timeout
            engine.replace(Communicator.from_handles(*where, timeout=timeout))
        return Work(engine, [], [])

    def _start_coalescing(self, device: Any = None) -> None:
        self._coalesced = []

    def _end_coalescing(self, device: Any = None) -> Any:
        works, self._coalesced = self._coalesced or [], None
        if works and not isinstance(works[-1], Work):
            return works[-1]  # the stream carries out all of them in order
        return Work(self._engine, works, [])

    start_coalescing, end_coalescing = _start_coalescing, _end_coalescing

    def _set_sequence_number_for_group(self) -> None:
        self._number = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    def set_timeout(self, timeout: Any) -> None:
        """Operations that start from now on fail after this time."""
        self._engine.limit = seconds(timeout)

    _set_default_timeout = set_timeout

    def abort(self, why: str = "the process group was aborted") -> None:
        """End all operations on all ranks with an error, from any thread."""
        self._engine.comm.abort(why)

    def shutdown(self) -> None:
        self._engine.close()


def _can_subclass_backend() -> bool:
    """Say whether this torch takes a Backend that is written in Python."""
    try:
        c10d.Backend(0, 1)
    except (AttributeError, TypeError):
        return False
    return True


class Group(Operations, dist.ProcessGroup):  # type: ignore[misc]
    """A process group.  Python calls its operations directly."""

    def __init__(self, engine: Engine, rank: int, size: int, store: Any) -> None:
        self._engine = engine
        # works may keep the engine for longer; at exit the communicator ends by itself
        weakref.finalize(self, engine.close).atexit = False
        if not _can_subclass_backend():
            dist.ProcessGroup.__init__(self, rank, size)
            return
        dist.ProcessGroup.__init__(self, store, rank, size)
        kind = dist.ProcessGroup.BackendType.CUSTOM
        self._set_default_backend(kind)
        self._backend = _backend(engine, rank, size, True)
        for device in DEVICES:
            self._register_backend(torch.device(device), kind, self._backend)


def _backend(engine: Engine, rank: int, size: int, is_whole: bool = False) -> Any:
    """Make the Backend by which C++ code reaches the operations of a group.

    The rank and the size of a Backend never change, those of a whole Group do.
    """
    base: Any = getattr(dist, "BackendBase", c10d.Backend)

    class CollBackend(Operations, base):  # type: ignore[misc]
        supports_splitting = supports_coalescing = supports_shrinking = True
        supports_reconfigure, supports_window = is_whole, False
        supports_abort_hooks = supports_completion_hooks = False
        _supports_time_estimate = supports_time_estimate = False

        def __init__(self) -> None:
            base.__init__(self, rank, size)
            self._engine = engine

        @property
        def options(self) -> Any:
            return base.Options("coll", timeout=timedelta(seconds=engine.timeout))

        def split(self, store: Any, ranks: Sequence[int], opts: Any) -> Any:
            """Make a group of some ranks; the others of this group do not call."""
            if rank not in ranks:
                return None
            limit = seconds(getattr(opts, "_timeout", None)) or engine.timeout
            place = list(ranks).index(rank)
            return _backend(_join(store, place, len(ranks), limit), place, len(ranks))

        def shrink(self, ranks: Sequence[int], flags: int = 0, opts: Any = None) -> Any:
            """Make a group of the ranks that live; those that are excluded do not call."""
            limit = seconds(getattr(opts, "_timeout", None)) or engine.timeout
            with _in_words(), engine.lock:
                rest = engine.comm.shrink(ranks, bool(flags))
                if rest.size + len(ranks) != size:
                    rest.close()
                    raise Failure(f"ranks {engine.comm.failed()} are dead: exclude all of them")
            return _backend(Engine(rest, limit), rest.rank, rest.size)

    return CollBackend()


def _join(store: Any, rank: int, size: int, timeout: float) -> Engine:
    """Make a communicator of the ranks that share a store."""
    with _in_words():
        if rank == 0:
            id = unique_id()
            store.set(_KEY, id)
        else:
            store.wait([_KEY], timedelta(seconds=timeout))
            id = bytes(store.get(_KEY))
        return Engine(Communicator.from_id(id, rank, size, timeout=timeout), timeout)


def _join_later(rank: int, size: int, timeout: float) -> Engine:
    """Make what stands for the communicator until reconfigure() makes one."""
    engine = Engine(Communicator.from_id(unique_id(), 0, 1), timeout)
    engine.comm.abort("the process group waits for reconfigure()")
    engine.rank, engine.size = rank, size
    return engine


def create(store: Any, rank: int, size: int, timeout: Any, is_later: bool = False) -> Group:
    """What init_process_group() and new_group() call."""
    limit = seconds(timeout) or 1800
    engine = _join_later(rank, size, limit) if is_later else _join(store, rank, size, limit)
    return Group(engine, rank, size, store)


register()
