# SPDX-License-Identifier: BSD-3-Clause
"""Every operation once: its arguments, checked, as one Call.

Communicator carries a Call out; its views start, prepare, plan and candidates make
something else of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Optional, Union

from ._buffers import Buffer, describe, empty_like
from ._types import NAMES
from .ops import Op, op_of

AnyOp = Union[str, Op]
Counts = Optional[Sequence[int]]
_NOTHING = Buffer(None, 0, 0, None)


class Call:
    """The arguments of an operation, by the names of struct coll_args."""

    __slots__ = (
        *("collective", "in_", "out", "count", "type", "op", "root", "comm", "stream"),
        *("in_counts", "in_displs", "out_counts", "out_displs", "result", "reducer", "keep"),
        *("tag", "status"),
    )

    def __init__(self, collective: str, source: Buffer, target: Buffer, root: int, stream: Any):
        self.collective, self.root, self.op = collective, root, 0
        self.in_, self.out, self.result = source.pointer, target.pointer, target.array
        self.count = source.length if source is not _NOTHING else target.length
        self.type = source.type if source is not _NOTHING else target.type
        self.stream = None if stream is None else _stream(stream)
        self.in_counts: Any = None
        self.in_displs = self.out_counts = self.out_displs = None
        self.reducer: Op | None = None
        self.keep: tuple[Any, ...] = (source, target)
        self.comm: int | None = None
        self.tag = 0
        self.status: int | None = None  # its address

    def spread(self, way: str, counts: Sequence[int], displs: Counts, size: int) -> Call:
        """Add the arrays of counts; way is "in" or "out"."""
        for name, values in (("_counts", counts), ("_displs", displs)):
            if values is not None:
                setattr(self, way + name, (ctypes.c_size_t * size)(*values))
        reach = max(d + n for d, n in zip(displs, counts)) if displs else sum(counts)
        have = self.keep[way == "out"].length
        if reach > have:
            raise ValueError(f"the counts reach to {reach}, and the array has {have} elements")
        return self


class Status(ctypes.Structure):
    """Where a message with a tag came from: `source`, `tag`, and `count` elements."""

    _fields_ = (
        *(("size", ctypes.c_size_t), ("source", ctypes.c_int), ("tag", ctypes.c_int)),
        ("count", ctypes.c_size_t),
    )

    def __init__(self) -> None:
        super().__init__(size=ctypes.sizeof(Status))


ANY = -1  # of a receive: any rank, or any tag


def _stream(stream: Any) -> int | None:
    """Return the number of a stream: an int, or a stream of CUDA Python, torch or CuPy."""
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr"):
        stream = getattr(stream, name, stream)
    return int(stream) or None


def _out(source: Buffer, out: Any, shape: Sequence[int], count: int | None = None) -> Buffer:
    """Return the buffer of the result: out, or a new array of this shape."""
    target = describe(empty_like(source, shape) if out is None else out, True, "out")
    if target.type != source.type:
        raise TypeError(f"out has {NAMES[target.type]} elements, and array {NAMES[source.type]}")
    if count is not None and target.length != count:
        raise ValueError(f"out has {target.length} elements; {count} are needed")
    return target


class Operations:
    """The operations of a communicator.

    `array` and `out` are buffers, `root` and `peer` ranks.  `op` is the name of a reduction,
    or an Op.  `stream` is the GPU's stream that the operation goes to.  `counts` and `displs`
    have a number of elements for each rank: blocks may then differ in length.
    """

    rank: int
    size: int

    def _do(self, call: Call) -> Any:
        raise NotImplementedError

    def _checked(self, *lists: Counts) -> None:
        for numbers in lists:
            if numbers is not None and (len(numbers) != self.size or min(numbers) < 0):
                raise ValueError(f"counts and displs need {self.size} numbers of at least 0")

    def _reduce(self, call: Call, op: AnyOp) -> Any:
        call.op, call.reducer = op_of(op)
        return self._do(call)

    def _row(self, source: Buffer) -> tuple[int, Sequence[int]]:
        """Return count and shape of one rank's part of an array."""
        count, rest = divmod(source.length, self.size)
        if rest:
            raise ValueError(f"array has {source.length} elements, not a multiple of {self.size}")
        return count, source.shape[1:] if source.shape[:1] == (self.size,) else (count,)

    def _reduce_like(self, name: str, array: Any, op: AnyOp, out: Any, stream: Any) -> Any:
        """Reduce to as many elements, into out or in place."""
        source = target = describe(array, out is None)
        if out is not None:
            target = _out(source, out, (), source.length)
        return self._reduce(Call(name, source, target, 0, stream), op)

    def allreduce(
        self, array: Any, op: AnyOp = "sum", out: Any = None, *, stream: Any = None
    ) -> Any:
        """Reduce array over all ranks, into out or in place."""
        return self._reduce_like("allreduce", array, op, out, stream)

    def scan(self, array: Any, op: AnyOp = "sum", out: Any = None, *, stream: Any = None) -> Any:
        """Reduce array over the ranks up to this one, into out or in place."""
        return self._reduce_like("scan", array, op, out, stream)

    def exscan(self, array: Any, op: AnyOp = "sum", out: Any = None, *, stream: Any = None) -> Any:
        """Reduce array over the ranks before this one; rank 0's result is left as it is."""
        return self._reduce_like("exscan", array, op, out, stream)

    def reduce(
        self, array: Any, op: AnyOp = "sum", root: int = 0, out: Any = None, *, stream: Any = None
    ) -> Any:
        """Reduce array over all ranks, on the root, into out or in place."""
        source = describe(array, out is None and root == self.rank)
        target = source if root == self.rank else _NOTHING
        if out is not None and target is source:
            target = _out(source, out, (), source.length)
        return self._reduce(Call("reduce", source, target, root, stream), op)

    def broadcast(self, array: Any, root: int = 0, out: Any = None, *, stream: Any = None) -> Any:
        """Copy the root's array to all ranks, into out or into their array."""
        if root == self.rank:
            source = target = describe(array)
            if out is not None:
                target = _out(source, out, (), source.length)
        else:
            source, target = _NOTHING, describe(array if out is None else out, True)
        return self._do(Call("broadcast", source, target, root, stream))

    def allgather(
        self, array: Any, out: Any = None, counts: Counts = None, displs: Counts = None,
        *, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Gather array, of counts[rank] elements, on all ranks: row r is rank r's."""
        source = describe(array)
        self._checked(counts, displs)
        if counts is None:
            target = _out(source, out, (self.size, *source.shape), self.size * source.length)
            return self._do(Call("allgather", source, target, 0, stream))
        target = _out(source, out, (sum(counts),))
        call = Call("allgatherv", source, target, 0, stream)
        call.spread("out", counts, displs, self.size)
        if source.length != counts[self.rank]:
            raise ValueError(f"array has {source.length} elements, not counts[{self.rank}]")
        return self._do(call)

    def reduce_scatter(
        self, array: Any, op: AnyOp = "sum", out: Any = None, counts: Counts = None,
        *, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Reduce array over all ranks; rank r gets row r of it, or counts[r] elements."""
        source = describe(array)
        self._checked(counts)
        mine = 0 if counts is None else counts[self.rank]
        count, shape = self._row(source) if counts is None else (mine, (mine,))
        name = "reduce_scatter" if counts is None else "reduce_scatterv"
        call = Call(name, source, _out(source, out, shape, count), 0, stream)
        call.count = count
        return self._reduce(call.spread("in", counts, None, self.size) if counts else call, op)

    def alltoall(
        self, array: Any, out: Any = None, counts: Counts = None, out_counts: Counts = None,
        displs: Counts = None, out_displs: Counts = None, *, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Send row r of array to rank r; row r of the result is from rank r.

        With counts, counts[r] elements go to rank r, and out_counts[r] come from it.
        """
        source = describe(array)
        self._checked(counts, out_counts, displs, out_displs)
        if counts is None or out_counts is None:
            target = _out(source, out, source.shape, source.length)
            call = Call("alltoall", source, target, 0, stream)
            call.count = self._row(source)[0]
            return self._do(call)
        call = Call("alltoallv", source, _out(source, out, (sum(out_counts),)), 0, stream)
        call.spread("in", counts, displs, self.size)
        return self._do(call.spread("out", out_counts, out_displs, self.size))

    def gather(
        self, array: Any, root: int = 0, out: Any = None, counts: Counts = None,
        displs: Counts = None, *, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Gather array on the root: row r of the result is rank r's.

        For arrays that differ in length all ranks pass counts; only the root's are read.
        """
        source, is_root = describe(array), root == self.rank
        if counts is None:
            target, total = _NOTHING, self.size * source.length
            if is_root:
                target = _out(source, out, (self.size, *source.shape), total)
            return self._do(Call("gather", source, target, root, stream))
        if is_root:
            self._checked(counts, displs)
        target = _out(source, out, (sum(counts),)) if is_root else _NOTHING
        call = Call("gatherv", source, target, root, stream)
        return self._do(call.spread("out", counts, displs, self.size) if is_root else call)

    def scatter(
        self, array: Any = None, root: int = 0, out: Any = None, counts: Counts = None,
        displs: Counts = None, *, stream: Any = None,
    ) -> Any:  # fmt: skip
        """Send row r of the root's array to rank r, into out; only the root may leave it out.

        For parts that differ in length all ranks pass counts; only the root's are read.
        """
        name = "scatter" if counts is None else "scatterv"
        if root != self.rank:
            return self._do(Call(name, _NOTHING, describe(out, True, "out"), root, stream))
        source = describe(array)
        self._checked(counts, displs)
        count, shape = self._row(source) if counts is None else (counts[root], (counts[root],))
        call = Call(name, source, _out(source, out, shape, count), root, stream)
        call.count = count
        return self._do(call.spread("in", counts, displs, self.size) if counts else call)

    def send(self, array: Any, peer: int, *, tag: int | None = None, stream: Any = None) -> Any:
        """Send array to one rank; with a tag, to a recv() that asks for it."""
        name = "send" if tag is None else "send_tagged"
        call = Call(name, describe(array), _NOTHING, peer, stream)
        call.tag = tag or 0
        return self._do(call)

    def recv(
        self, array: Any, peer: int, *, tag: int | None = None, status: Status | None = None,
        stream: Any = None,
    ) -> Any:  # fmt: skip
        """Receive array from one rank.

        With a tag, peer and tag may be ANY, and the message may be shorter than array: status,
        a Status, then has its source, tag and count.
        """
        name = "recv" if tag is None else "recv_tagged"
        call = Call(name, _NOTHING, describe(array, True), peer, stream)
        call.tag = tag or 0
        if status is not None:
            if tag is None:
                raise ValueError("a status is for messages with a tag: pass tag=")
            call.status, call.keep = ctypes.addressof(status), (*call.keep, status)
        return self._do(call)

    def barrier(self, *, stream: Any = None) -> Any:
        """Wait until every rank has come here."""
        return self._do(Call("barrier", _NOTHING, _NOTHING, 0, stream))
