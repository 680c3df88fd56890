# SPDX-License-Identifier: BSD-3-Clause
"""Horovod's programming interface over libcoll.

    import libcoll.horovod.torch as hvd  # where a program has: import horovod.torch as hvd

`python -m libcoll.horovod program.py` runs a program as it is.  doc/torch.md, doc/elastic.md and
doc/keras.md say what differs from Horovod.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from typing import Any

_PARTS = ("mpi_ops", "functions", "optimizer", "compression", "sync_batch_norm")
# modules of Horovod, and ours that have their names
_MODULES = {
    "torch": "torch",
    **{f"torch.{part}": "torch" for part in _PARTS},
    **dict.fromkeys(("torch.elastic", "torch.elastic.state", "torch.elastic.sampler"), "elastic"),
    "common.elastic": "elastic",
    "tensorflow": "tensorflow",
    **{f"tensorflow.{part}": "tensorflow" for part in ("mpi_ops", "functions", "compression")},
    "keras": "keras",
    "tensorflow.keras": "keras",
    "keras.callbacks": "callbacks",
    "tensorflow.keras.callbacks": "callbacks",
    "common": "_coordinator",
    "common.exceptions": "_coordinator",
}


class _Finder(MetaPathFinder, Loader):
    """Finds modules of Horovod when a program imports them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top, _, rest = name.partition(".")
        return spec_from_loader(name, self) if top == "horovod" and rest in _MODULES else None

    def exec_module(self, module: Any) -> None:
        name = module.__name__
        found = import_module(f"libcoll.horovod.{_MODULES[name.partition('.')[2]]}")
        vars(found).setdefault("__path__", [])  # others are found below it
        sys.modules[name] = found


def install() -> None:
    """From now on `import horovod.torch` finds this package's module in this process."""
    sys.modules["horovod"] = sys.modules[__name__]
    sys.meta_path.insert(0, _Finder())
