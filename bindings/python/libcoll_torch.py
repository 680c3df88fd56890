# SPDX-License-Identifier: BSD-3-Clause
"""How torch finds the backend "coll": the entry point that pyproject.toml names.

`import torch` calls register().  The package libcoll, which loads libcoll.so, is imported
by the first process group.
"""

from __future__ import annotations

from typing import Any

DEVICES = ["cpu", "cuda"]


def register() -> None:
    """Tell torch.distributed of the backend."""
    import torch.distributed as dist

    if not dist.is_available() or "COLL" in dist.Backend._plugins:
        return
    try:
        dist.Backend.register_backend("coll", _create, extended_api=True, devices=DEVICES)
    except TypeError:  # torch 1.13
        dist.Backend.register_backend("coll", _create)


def _create(*arguments: Any) -> Any:
    from libcoll.torch import create

    if len(arguments) == 2:  # options of torch, and those of a backend
        opts = arguments[0]
        arguments = opts.store, opts.group_rank, opts.group_size, opts.timeout
        return create(*arguments, getattr(opts, "enable_reconfigure", False))
    return create(*arguments)
