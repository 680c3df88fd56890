# SPDX-License-Identifier: BSD-3-Clause
"""Horovod's programming interface over libcoll.

    import libcoll.horovod.torch as hvd  # where a program has: import horovod.torch as hvd

`python -m libcoll.horovod program.py` runs a program as it is.  doc/python.md says what
differs from Horovod.
"""

from __future__ import annotations

import sys
from importlib import import_module

_PARTS = ("mpi_ops", "functions", "optimizer", "compression", "sync_batch_norm")


def install() -> None:
    """From now on `import horovod.torch` finds this package's module in this process."""
    hvd = import_module("libcoll.horovod.torch")
    sys.modules["horovod"] = sys.modules[__name__]
    for name in ("torch", *(f"torch.{part}" for part in _PARTS), "common", "common.exceptions"):
        sys.modules[f"horovod.{name}"] = hvd
