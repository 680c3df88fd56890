# SPDX-License-Identifier: BSD-3-Clause
"""libcoll: collective operations over a group of processes.

    import libcoll, numpy

    with libcoll.Communicator.from_env() as comm:
        print(comm.allreduce(numpy.ones(4)))

doc/python.md describes the package, coll.h the operations.
"""

from . import _lib
from ._calls import ANY, Status
from .comm import Communicator, PlanInfo
from .errors import AbortedError, BootstrapError, DeadlineError, Error, InternalError
from .errors import InvalidError, MismatchError, OutOfMemoryError, PeerError
from .errors import SystemCallError, TransportError, TruncatedError, UnsupportedError
from .ops import Op
from .process import handle, mem_alloc, set_log_handler, unique_id, unique_id_free
from .request import Request, group

__version__: str = _lib.lib.coll_version().decode()

__all__ = ["ANY", "Communicator", "Op", "PlanInfo", "Request", "Status", "group", "mem_alloc"]
__all__ += ["handle", "set_log_handler", "unique_id", "unique_id_free"]
__all__ += ["Error", "InvalidError", "OutOfMemoryError", "SystemCallError", "PeerError"]
__all__ += ["DeadlineError", "MismatchError", "UnsupportedError", "AbortedError"]
__all__ += ["BootstrapError", "TransportError", "InternalError", "TruncatedError"]
