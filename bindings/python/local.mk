# SPDX-License-Identifier: BSD-3-Clause
# The Python package: in the tarball always, installed with configure --with-python.
python_package = %D%/libcoll/__init__.py %D%/libcoll/_buffers.py %D%/libcoll/_calls.py \
	%D%/libcoll/_interrupt.py %D%/libcoll/_lib.py %D%/libcoll/_types.py \
	%D%/libcoll/comm.py %D%/libcoll/errors.py %D%/libcoll/ops.py \
	%D%/libcoll/process.py %D%/libcoll/py.typed %D%/libcoll/request.py
EXTRA_DIST += $(python_package) %D%/README.md %D%/pyproject.toml %D%/setup.py \
	%D%/tests/faults.py %D%/tests/gpu.py %D%/tests/ranks.py
if WITH_PYTHON
collpythondir = $(pythondir)/libcoll
collpython_DATA = $(python_package)
endif
scripts += %D%/tests/python.sh
