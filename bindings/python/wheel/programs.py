# SPDX-License-Identifier: BSD-3-Clause
"""The package libcoll_bundle of a wheel: libraries in lib, programs in bin, and run()."""

import os
import signal
import sys
from pathlib import Path


def run() -> None:
    """Become the program that has the name of this console script."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them; programs should not
        signal.signal(number, signal.SIG_DFL)
    program = Path(__file__).parent / "bin" / Path(sys.argv[0]).name
    os.execv(program, sys.argv)
