# SPDX-License-Identifier: BSD-3-Clause
"""The names of horovod.tensorflow, for TensorFlow 2.  doc/keras.md has the differences.

An operation is a function of Python on numpy arrays.  In a graph it is one node, which
submits all its tensors by name and waits for them.
"""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import tensorflow as tf

from . import _numpy
from ._common import Adasum, Average, Max, Min, Product, Sum, dumps, op_of, submit
from ._coordinator import Entry, HorovodInternalError
from ._processes import ProcessSet, add_process_set, ccl_built, cross_rank, cross_size
from ._processes import cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled
from ._processes import init, is_homogeneous, is_initialized, local_rank, local_size, mpi_built
from ._processes import mpi_enabled, mpi_threads_supported, nccl_built, rank, remove_process_set
from ._processes import rocm_built, shutdown, size, start_timeline, stop_timeline
from .compression import Compressor


class FP16Compressor(Compressor):
    """Sends floating-point numbers as f16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        is_float = tensor.dtype.is_floating
        return (tf.cast(tensor, tf.float16) if is_float else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tf.cast(tensor, context)


class Compression:
    none = Compressor
    fp16 = FP16Compressor


# ---- how operations are submitted --------------------------------------------------


def _refuse_xla() -> None:
    """A function that XLA compiles cannot call Python: say so while it is traced."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        is_traced = isinstance(caller, tf.types.experimental.PolymorphicFunction)
        if is_traced and getattr(caller, "_jit_compile", False):
            raise NotImplementedError(
                "Horovod's operations cannot be compiled by XLA: pass jit_compile=False to "
                "tf.function and to Model.compile"
            )
        frame = frame.f_back


def _run(
    operation: str, tensors: Sequence[Any], names: Sequence[str | None], process_set: ProcessSet,
    shapes: Sequence[Any], dtypes: Any = None, extra: Any = None, **options: Any,
) -> list[Any]:  # fmt: skip
    """Carry out an operation on each tensor; the results have these shapes and types.

    In a graph, tensors without a name are numbered in the order of the trace, which is also
    that in which their nodes run.  `extra` is an argument of the entry, as a tensor.
    """
    kind = "Horovod" + operation.capitalize()
    if not tf.executing_eagerly() and None in names:
        own = tf.compat.v1.get_default_graph().unique_name(kind)
        names = [name or own for name in names]
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        name = name or kind
        unique.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1

    def carry_out(*given: Any) -> list[Any]:
        arrays, more = given[: len(unique)], given[len(unique) :]
        entries: list[Entry] = []
        for name, array in zip(unique, arrays):
            outputs = [numpy.empty_like(array)] if operation in ("allreduce", "broadcast") else ()
            arguments = operation, [array], outputs, name, process_set
            entries.append(submit(_numpy, *arguments, extra=[int(n) for n in (more or ((),))[0]],
                                  **options))  # fmt: skip
        for entry in entries:
            entry.coordinator.wait(entry)
        return [output for entry in entries for output in entry.outputs]

    inputs = [*tensors] if extra is None else [*tensors, extra]
    if tf.executing_eagerly():
        return list(map(tf.convert_to_tensor, carry_out(*map(numpy.asarray, inputs))))
    _refuse_xla()
    types = dtypes or [tensor.dtype for tensor in tensors]
    results = tf.numpy_function(carry_out, inputs, types, name=kind)
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return list(results)


def _tensors(given: Any) -> list[Any]:
    return [tf.convert_to_tensor(tensor) for tensor in given]


def _rows(tensors: Sequence[Any]) -> list[Any]:
    """The shapes of tensors whose first dimension is not known before."""
    return [tf.TensorShape([None]).concatenate(tensor.shape[1:]) for tensor in tensors]


def _reduce(
    tensors: Sequence[Any], names: Sequence[str | None], op: int, prescale: float,
    postscale: float, process_set: ProcessSet, compression: Any = Compression.none,
) -> list[Any]:  # fmt: skip
    """Reduce tensors, each by its name; gradients are reduced in the same way."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def reduce(*sent: Any) -> Any:
        scale = float(prescale), float(postscale)
        results = _run("allreduce", sent, names, process_set, [t.shape for t in sent],
                       op=op, scale=scale)  # fmt: skip

        def back(*gradients: Any) -> Any:
            own = [name and f"{name}_grad" for name in names]
            return _reduce(_tensors(gradients), own, op, prescale, postscale, process_set)

        return results, back

    sent, contexts = zip(*map(compression.compress, tensors))
    return list(map(compression.decompress, reduce(*sent), contexts))


# ---- operations --------------------------------------------------------------------


def allreduce(
    tensor: Any, average: bool | None = None, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, op: int | None = None, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, name: str | None = None,
    process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
) -> Any:  # fmt: skip
    """Reduce a tensor.  tf.IndexedSlices are gathered: their sum is that of all ranks."""
    op = op_of(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        if op not in (Sum, Average):
            raise NotImplementedError("IndexedSlices have sums and averages: use sparse_as_dense")
        values = allgather(tensor.values, name and f"{name}_values", process_set=process_set)
        indices = allgather(tensor.indices, name and f"{name}_indices", process_set=process_set)
        if op == Average:
            values /= tf.cast(process_set.size(), values.dtype)
        return tf.IndexedSlices(values, indices, tensor.dense_shape)
    return _reduce(_tensors([tensor]), [name], op, prescale_factor, postscale_factor, process_set,
                   compression)[0]  # fmt: skip


def grouped_allreduce(
    tensors: Sequence[Any], average: bool | None = None, device_dense: str = "",
    device_sparse: str = "", compression: Any = Compression.none, op: int | None = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:  # fmt: skip
    """Reduce tensors together."""
    names = [None] * len(tensors)
    return _reduce(_tensors(tensors), names, op_of(op, average), prescale_factor,
                   postscale_factor, process_set, compression)  # fmt: skip


def allgather(
    tensor: Any, name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Gather tensors; a gradient is the sum of those of this rank's rows."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gather(sent: Any) -> Any:
        def back(gradient: Any) -> Any:
            total = allreduce(gradient, op=Sum, name=name and f"{name}_grad",
                              process_set=process_set)  # fmt: skip
            mine = tf.shape(sent)[:1]
            rows = allgather(mine, name and f"{name}_rows", process_set=process_set)
            begin = tf.reduce_sum(rows[: process_set.rank()])
            return total[begin : begin + mine[0]]

        return _run("allgather", [sent], [name], process_set, _rows([sent]))[0], back

    return gather(tf.convert_to_tensor(tensor))


def grouped_allgather(
    tensors: Sequence[Any], name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:  # fmt: skip
    return [allgather(tensor, name and f"{name}.{n}", process_set=process_set)
            for n, tensor in enumerate(tensors)]  # fmt: skip


def broadcast(
    tensor: Any, root_rank: int, name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Copy the root's tensor to all ranks; the gradient is the root's, of all ranks."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def copy(sent: Any) -> Any:
        def back(gradient: Any) -> Any:
            total = allreduce(gradient, op=Sum, name=name and f"{name}_grad",
                              process_set=process_set)  # fmt: skip
            return total if rank() == root_rank else tf.zeros_like(total)

        return _broadcast([sent], root_rank, [name], process_set)[0], back

    return copy(tf.convert_to_tensor(tensor))


def _broadcast(
    tensors: Sequence[Any], root_rank: int, names: Sequence[str | None], process_set: ProcessSet
) -> list[Any]:
    if root_rank not in process_set._members():
        raise ValueError(f"root rank {root_rank} is not in the process set {process_set.ranks}")
    return _run("broadcast", tensors, names, process_set, [t.shape for t in tensors],
                root=process_set._members().index(root_rank))  # fmt: skip


def alltoall(
    tensor: Any, splits: Any = None, name: str | None = None, ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Send rows to each rank: splits[r] to rank r, without splits as many to each.

    With splits the result is a pair: the tensor, and how many rows came from each rank.
    """

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def exchange(sent: Any) -> Any:
        n = process_set.size()
        numbers = tf.fill([n], tf.shape(sent)[0] // n) if splits is None else splits
        shapes, types = [*_rows([sent]), [n]], [sent.dtype, tf.int32]
        output, received = _run("alltoall", [sent], [name], process_set, shapes, types,
                                tf.convert_to_tensor(numbers))  # fmt: skip

        def back(gradient: Any, _: Any = None) -> Any:
            return alltoall(gradient, received, name and f"{name}_grad", process_set=process_set)[0]

        return (output, received), back

    result = exchange(tf.convert_to_tensor(tensor))
    return result[0] if splits is None else result


def reducescatter(
    tensor: Any, device_dense: str = "", compression: Any = Compression.none, op: int = Average,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Reduce a tensor; each rank gets some rows, the first ranks one more."""
    if op not in (Sum, Average):
        raise NotImplementedError("reducescatter supports Sum and Average")
    scale = float(prescale_factor), float(postscale_factor)
    factor = scale[0] * scale[1] / (process_set.size() if op == Average else 1)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def scatter(sent: Any) -> Any:
        def back(gradient: Any) -> Any:
            return allgather(gradient, name and f"{name}_grad", process_set=process_set) * factor

        return _run("reducescatter", [sent], [name], process_set, _rows([sent]), op=op,
                    scale=scale)[0], back  # fmt: skip

    sent, context = compression.compress(tf.convert_to_tensor(tensor))
    return compression.decompress(scatter(sent), context)


def grouped_reducescatter(tensors: Sequence[Any], *args: Any, **options: Any) -> list[Any]:
    return [reducescatter(tensor, *args, **options) for tensor in tensors]


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until every rank has come here."""
    entry = submit(_numpy, "barrier", (), (), None, process_set)
    entry.coordinator.wait(entry)


def join() -> int:
    """Wait until all ranks have called this, and return the last one that did."""
    return global_process_set._coordinator_of_rank().join()


# ---- variables and objects ---------------------------------------------------------


def _name_of(variable: Any) -> str:
    return str(getattr(variable, "path", None) or variable.name)


def broadcast_variables(
    variables: Any, root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Give variables the values of the root's."""
    variables = list(variables)
    if variables:
        names = [f"broadcast.{_name_of(variable)}" for variable in variables]
        values = _broadcast(_tensors(variables), root_rank, names, process_set)
        for variable, value in zip(variables, values):
            variable.assign(value)


def broadcast_object(
    obj: Any, root_rank: int = 0, session: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Return the root's object on all ranks."""
    name, is_root = name or "object", rank() == root_rank
    data = numpy.frombuffer(dumps(obj) if is_root else b"", "u1")
    length = int(broadcast(numpy.array([len(data)]), root_rank, name + ".length",
                           process_set=process_set)[0])  # fmt: skip
    data = data if is_root else numpy.zeros(length, "u1")
    received = broadcast(data, root_rank, name + ".bytes", process_set=process_set)
    return obj if is_root else pickle.loads(received.numpy().tobytes())


def allgather_object(
    obj: Any, session: Any = None, name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:  # fmt: skip
    """Return the objects of all ranks."""
    name, data = name or "object", numpy.frombuffer(dumps(obj), "u1")
    lengths = allgather(numpy.array([len(data)]), name + ".length", process_set=process_set)
    gathered = allgather(data, name + ".bytes", process_set=process_set)
    return [pickle.loads(part.numpy().tobytes()) for part in tf.split(gathered, lengths)]


# ---- gradients ---------------------------------------------------------------------


def gradient_reducer(
    prefix: str, compression: Any, sparse_as_dense: bool, op: int, factor: float,
    process_set: ProcessSet, postscale: float = 1.0,
) -> Callable[[Sequence[Any], Sequence[Any]], list[Any]]:  # fmt: skip
    """Return a function that reduces gradients, named by their variables."""
    if factor != 1 and op != Average:
        raise ValueError("gradient_predivide_factor not supported unless op is set to Average")

    def reduce(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        if process_set.size() == 1:
            return list(gradients)
        results, names = list(gradients), [f"{prefix}/{_name_of(v)}" for v in variables]
        dense = []
        for n, gradient in enumerate(gradients):
            if isinstance(gradient, tf.IndexedSlices) and not sparse_as_dense:
                results[n] = allreduce(gradient, op=op, name=names[n], process_set=process_set)
            elif gradient is not None:
                dense.append(n)
        if dense:
            reduced = _reduce(_tensors([gradients[n] for n in dense]), [names[n] for n in dense],
                              op, 1 / factor, factor * postscale, process_set, compression)
            for n, gradient in zip(dense, reduced):
                results[n] = gradient
        return results

    return reduce


class _DistributedTape:
    """What DistributedGradientTape() puts before the class of a tape."""

    _reduce_gradients: Any

    def gradient(self, target: Any, sources: Any, *args: Any, **options: Any) -> Any:
        gradients = super().gradient(target, sources, *args, **options)  # type: ignore[misc]
        flat, variables = tf.nest.flatten(gradients), tf.nest.flatten(sources)
        return tf.nest.pack_sequence_as(sources, self._reduce_gradients(flat, variables))


def DistributedGradientTape(
    gradtape: Any, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, sparse_as_dense: bool = False, op: int = Average,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Return a tape of the same class whose gradient() gives those of all ranks."""
    kind: Any = type(type(gradtape).__name__, (_DistributedTape, type(gradtape)), {})
    result = kind.__new__(kind)
    vars(result).update(vars(gradtape))
    result._reduce_gradients = gradient_reducer(
        "DistributedGradientTape", compression, sparse_as_dense, op, gradient_predivide_factor,
        process_set,
    )
    return result


def DistributedOptimizer(optimizer: Any, *args: Any, **options: Any) -> Any:
    """As libcoll.horovod.keras.DistributedOptimizer."""
    from . import keras

    return keras.DistributedOptimizer(optimizer, *args, **options)
