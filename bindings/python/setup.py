# SPDX-License-Identifier: BSD-3-Clause
"""The version of the package is that of configure.ac; the rest is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

text = (Path(__file__).resolve().parents[2] / "configure.ac").read_text()
setup(version=re.search(r"AC_INIT\(\[libcoll\], \[([^]]+)\]", text).group(1))
