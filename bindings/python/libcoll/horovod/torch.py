# SPDX-License-Identifier: BSD-3-Clause
"""The names of horovod.torch.  doc/python.md has the differences from Horovod."""

import sys

from . import elastic
from ._common import Adasum, Average, Max, Min, Product, Sum
from ._coordinator import HorovodInternalError, HostsUpdatedInterrupt
from ._processes import ProcessSet, add_process_set, ccl_built, cross_rank, cross_size
from ._processes import cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled
from ._processes import init, is_homogeneous, is_initialized, local_rank, local_size, mpi_built
from ._processes import mpi_enabled, mpi_threads_supported, nccl_built, rank, remove_process_set
from ._processes import rocm_built, shutdown, size, start_timeline, stop_timeline
from .compression import Compression
from .functions import allgather_object, broadcast_object, broadcast_optimizer_state
from .functions import broadcast_parameters
from .ops import allgather, allgather_async, allreduce, allreduce_, allreduce_async
from .ops import allreduce_async_, alltoall, alltoall_async, barrier
from .ops import broadcast, broadcast_, broadcast_async, broadcast_async_, grouped_allgather
from .ops import grouped_allgather_async, grouped_allreduce, grouped_allreduce_
from .ops import grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter
from .ops import grouped_reducescatter_async, join, poll, reducescatter, reducescatter_async
from .ops import sparse_allreduce_async, synchronize
from .optimizer import DistributedOptimizer
from .sync_batch_norm import SyncBatchNorm

sys.modules[__name__ + ".elastic"] = elastic
__all__ = [name for name in dir() if name[0] != "_"]
