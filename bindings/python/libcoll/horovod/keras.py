# SPDX-License-Identifier: BSD-3-Clause
"""The names of horovod.keras and horovod.tensorflow.keras, for Keras 3 over TensorFlow."""

from __future__ import annotations

from typing import Any

import keras as framework

from . import callbacks
from . import tensorflow as _tf
from .tensorflow import Adasum, Average, Compression, HorovodInternalError, Max, Min, ProcessSet
from .tensorflow import Product, Sum, add_process_set, allgather, allgather_object, barrier
from .tensorflow import broadcast, broadcast_object, broadcast_variables, ccl_built, cross_rank
from .tensorflow import cross_size, cuda_built, ddl_built, global_process_set, gloo_built
from .tensorflow import gloo_enabled, init, is_homogeneous, is_initialized, join, local_rank
from .tensorflow import local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built
from .tensorflow import rank, remove_process_set, rocm_built, shutdown, size, start_timeline
from .tensorflow import stop_timeline


def allreduce(
    value: Any, name: str | None = None, average: bool | None = None,
    prescale_factor: float = 1.0, postscale_factor: float = 1.0, op: int | None = None,
    compression: Any = Compression.none,
) -> Any:  # fmt: skip
    return _tf.allreduce(value, average, compression=compression, op=op, name=name,
                         prescale_factor=prescale_factor,
                         postscale_factor=postscale_factor)  # fmt: skip


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    return _tf.reducescatter(value, op=op, name=name)


class _Distributed:
    """What DistributedOptimizer() puts before the class of an optimizer."""

    _reduce_gradients: Any

    def _backend_apply_gradients(self, gradients: Any, variables: Any) -> None:
        self.__dict__["_applied"] = list(variables)
        super()._backend_apply_gradients(gradients, variables)  # type: ignore[misc]

    def _clip_gradients(self, gradients: Any) -> Any:
        """Keras calls this when it is about to use gradients, after it has accumulated them."""
        gradients = self._reduce_gradients(gradients, self.__dict__["_applied"])
        return super()._clip_gradients(gradients)  # type: ignore[misc]


def DistributedOptimizer(
    optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
    compression: Any = Compression.none, sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0, op: int = Average, backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Let an optimizer use the gradients of all ranks, and return it.

    It is saved as one of the class that it had.
    """
    cls = type(optimizer)
    if not hasattr(cls, "_backend_apply_gradients"):
        raise TypeError(f"{cls.__name__} is no optimizer of Keras 3; those of older versions and "
                        "of TensorFlow 1 are not supported")  # fmt: skip
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer is one of DistributedOptimizer() already")
    postscale = 1.0
    if backward_passes_per_step > 1:
        optimizer.gradient_accumulation_steps = backward_passes_per_step
        postscale = 1.0 if average_aggregated_gradients else backward_passes_per_step
    reduce = _tf.gradient_reducer(
        f"{name or 'Distributed' + cls.__name__}_Allreduce", compression, sparse_as_dense, op,
        gradient_predivide_factor, process_set, postscale,
    )
    members = {"__module__": cls.__module__, "_reduce_gradients": staticmethod(reduce)}
    optimizer.__class__ = type(cls.__name__, (_Distributed, cls), members)
    return optimizer


def load_model(
    filepath: Any, custom_optimizers: Any = None, custom_objects: Any = None,
    compression: Any = Compression.none,
) -> Any:  # fmt: skip
    """Load a model that was saved, whose optimizer is a DistributedOptimizer() from now on."""
    objects = {cls.__name__: cls for cls in custom_optimizers or ()}
    model = framework.models.load_model(filepath, {**objects, **(custom_objects or {})})
    if getattr(model, "optimizer", None) is not None:
        DistributedOptimizer(model.optimizer, compression=compression)
    return model
