# SPDX-License-Identifier: BSD-3-Clause
# The Python package: in the tarball always, installed with configure --with-python.
python_package = %D%/libcoll/__init__.py %D%/libcoll/_buffers.py %D%/libcoll/_calls.py \
	%D%/libcoll/_interrupt.py %D%/libcoll/_lib.py %D%/libcoll/_notices.py %D%/libcoll/_torch_work.py \
	%D%/libcoll/_types.py %D%/libcoll/comm.py %D%/libcoll/errors.py %D%/libcoll/ops.py \
	%D%/libcoll/process.py %D%/libcoll/py.typed %D%/libcoll/request.py \
	%D%/libcoll/torch.py
EXTRA_DIST += $(python_package) %D%/README.md %D%/entry_points.txt %D%/libcoll_torch.py \
	%D%/pyproject.toml %D%/setup.py \
	%D%/tests/faults.py %D%/tests/gpu.py %D%/tests/ranks.py %D%/tests/torch_ranks.py
if WITH_PYTHON
collpythondir = $(pythondir)/libcoll
collpython_DATA = $(python_package)
colltorch_DATA = %D%/libcoll_torch.py
colltorchdir = $(pythondir)
# by which importlib.metadata finds the package and its entry points
collinfodir = $(pythondir)/libcoll-$(PACKAGE_VERSION).dist-info
collinfo_DATA = %D%/entry_points.txt %D%/METADATA
CLEANFILES += %D%/METADATA
%D%/METADATA: Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && printf 'Metadata-Version: 2.1\nName: libcoll\nVersion: %s\n' \
	    $(PACKAGE_VERSION) > $@
endif
scripts += %D%/tests/python.sh %D%/tests/torch.sh
