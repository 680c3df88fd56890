# SPDX-License-Identifier: BSD-3-Clause
"""python -m libcoll.horovod PROGRAM [ARGUMENT...]: `import horovod.torch` finds libcoll."""

import runpy
import sys
from pathlib import Path

from libcoll.horovod import install

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    install()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
