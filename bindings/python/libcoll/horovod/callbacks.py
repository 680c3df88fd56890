# SPDX-License-Identifier: BSD-3-Clause
"""The callbacks of horovod.keras.callbacks, for Keras 3."""

from __future__ import annotations

from typing import Any

import keras

from .tensorflow import ProcessSet, allreduce, broadcast_variables, global_process_set, size


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Gives all ranks the root's weights, and the state of its optimizer, behind batch 0."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank, self.is_done = root_rank, False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if not self.is_done:
            broadcast_variables(self.model.weights, self.root_rank)
            broadcast_variables(self.model.optimizer.variables, self.root_rank)
        self.is_done = True


class MetricAverageCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Averages the metrics of an epoch over all ranks, for the callbacks behind it."""

    def __init__(self, device: str = "", process_set: ProcessSet = global_process_set) -> None:
        super().__init__()
        self.process_set = process_set

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        for name in sorted(logs or ()):
            average = allreduce(float(logs[name]), name=f"metric.{name}",
                                process_set=self.process_set)  # fmt: skip
            logs[name] = float(average)


class LearningRateScheduleCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Multiplies the first learning rate by multiplier(epoch) in some epochs.

    Without staircase the epoch is a fraction that grows with each batch.
    """

    def __init__(
        self, initial_lr: float, multiplier: Any, start_epoch: int = 0,
        end_epoch: int | None = None, staircase: bool = True, momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.staircase = staircase or not callable(multiplier)
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier
        self.steps_per_epoch, self.epoch = steps_per_epoch, 0

    def on_train_begin(self, logs: Any = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self.params.get("steps")
            if not self.steps_per_epoch:
                raise ValueError("the number of batches is not known: pass steps_per_epoch")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        is_over = self.end_epoch is not None and self.epoch >= self.end_epoch
        if self.epoch < self.start_epoch or is_over or (self.staircase and batch):
            return
        epoch = self.epoch if self.staircase else self.epoch + batch / (self.steps_per_epoch or 1)
        self.model.optimizer.learning_rate = self.initial_lr * self.multiplier(epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if logs is not None:
            logs["lr"] = float(self.model.optimizer.learning_rate)


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from that of one rank, initial_lr / size(), to initial_lr."""

    def __init__(
        self, initial_lr: float, warmup_epochs: int = 5, momentum_correction: bool = True,
        steps_per_epoch: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        def multiplier(epoch: float) -> float:
            epoch += 1 / (self.steps_per_epoch or 1)  # the last batch has the whole rate
            return (epoch * (size() - 1) / warmup_epochs + 1) / size()

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction,
                         steps_per_epoch)  # fmt: skip
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch + 1 == self.end_epoch and self.verbose:
            rate = float(self.model.optimizer.learning_rate)
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):  # type: ignore[misc]
    """Saves the best model; `filepath` may be set before fit()."""

    def __init__(
        self, monitor: str = "val_loss", verbose: int = 0, mode: str = "auto",
        save_freq: Any = "epoch",
    ) -> None:  # fmt: skip
        super().__init__("best.keras", monitor, verbose, True, mode=mode, save_freq=save_freq)
