# SPDX-License-Identifier: BSD-3-Clause
"""What is sent instead of a gradient."""

from __future__ import annotations

from typing import Any


class Compressor:
    """Sends tensors as they are; those of the caller's own have the same two functions."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Return what is sent, and what decompress() needs to know."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tensor


class FP16Compressor(Compressor):
    """Sends floating-point numbers as f16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        return (tensor.half() if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, context: Any) -> Any:
        return tensor.to(context)


class Compression:
    none = Compressor
    fp16 = FP16Compressor
