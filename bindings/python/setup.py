# SPDX-License-Identifier: BSD-3-Clause
"""The version of the package is that of configure.ac, which a source distribution has noted
in PKG-INFO; the rest is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

here = Path(__file__).resolve().parent
noted = here / "PKG-INFO"
if noted.exists():
    version = re.search(r"^Version: (.*)", noted.read_text(), re.M)
else:
    text = (here.parents[1] / "configure.ac").read_text()
    version = re.search(r"AC_INIT\(\[libcoll\], \[([^]]+)\]", text)
setup(version=version.group(1))
