# SPDX-License-Identifier: BSD-3-Clause
"""Batch normalization over the batches of all ranks."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ._common import Sum
from ._processes import size
from .ops import allreduce


class SyncBatchNorm(_BatchNorm):  # type: ignore[misc]
    """As torch.nn.BatchNorm1d to 3d; mean and variance are those of all ranks' batches."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        if size() == 1 or not (self.training or self.running_mean is None):
            return super().forward(input)
        axes = [axis for axis in range(input.dim()) if axis != 1]
        shape = [-1 if axis == 1 else 1 for axis in range(input.dim())]
        wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        mine = torch.full_like(wide[:1].sum(axes), float(input.numel() // input.shape[1]))
        count = allreduce(mine, op=Sum)
        mean = allreduce(wide.sum(axes), op=Sum) / count
        centred = wide - mean.view(shape)
        variance = allreduce(centred.square().sum(axes), op=Sum) / count
        if self.track_running_stats:
            self._track(mean.detach(), (variance * count / (count - 1).clamp(min=1)).detach())
        result = centred * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        return result.to(input.dtype)

    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:  # the average over all batches
            momentum = 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)
