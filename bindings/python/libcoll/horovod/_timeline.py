# SPDX-License-Identifier: BSD-3-Clause
"""The timeline of Horovod: a JSON file of Chrome's trace events, written on rank 0."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from ._coordinator import Batch


class Timeline:
    """Events, one a line.  Each tensor has a row: first its wait for the other ranks, then
    the operation.  chrome://tracing reads a file whose list has no end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: Any = None
        self._rows: dict[str, int] = {}

    def start(self, path: str) -> None:
        self.stop()
        self._file, self._rows = open(path, "w"), {}  # noqa: SIM115
        self._file.write("[\n")

    def stop(self) -> None:
        with self._lock:
            if self._file:
                self._file.write("{}]\n")
                self._file.close()
            self._file = None

    def note(self, batch: Batch, begun: float) -> None:
        """Write what operations did that have just ended."""
        with self._lock:
            for signature, entry in batch if self._file else ():
                name, verb = signature.name, signature.operation.upper()
                if name not in self._rows:
                    self._rows[name] = len(self._rows) + 1
                    self._write(self._rows[name], "process_name", "M", args={"name": name})
                row = self._rows[name]
                self._span(row, "NEGOTIATE_" + verb, entry.since if entry else begun, begun)
                self._span(row, verb, begun, time.monotonic())

    def _span(self, row: int, name: str, begun: float, ended: float) -> None:
        self._write(row, name, "X", ts=int(begun * 1e6), dur=int((ended - begun) * 1e6))

    def _write(self, row: int, name: str, phase: str, **more: Any) -> None:
        self._file.write(json.dumps({"name": name, "ph": phase, "pid": row, **more}) + ",\n")
