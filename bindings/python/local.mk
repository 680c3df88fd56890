# SPDX-License-Identifier: BSD-3-Clause
# The Python package: in the tarball always, installed with configure --with-python.
python_package = %D%/libcoll/__init__.py %D%/libcoll/_buffers.py %D%/libcoll/_calls.py \
	%D%/libcoll/_interrupt.py %D%/libcoll/_lib.py %D%/libcoll/_notices.py %D%/libcoll/_tensors.py \
	%D%/libcoll/_torch_work.py %D%/libcoll/_types.py %D%/libcoll/comm.py %D%/libcoll/errors.py \
	%D%/libcoll/ops.py %D%/libcoll/process.py %D%/libcoll/py.typed %D%/libcoll/request.py \
	%D%/libcoll/torch.py
horovod_package = %D%/libcoll/horovod/__init__.py %D%/libcoll/horovod/__main__.py \
	%D%/libcoll/horovod/_carry.py %D%/libcoll/horovod/_common.py \
	%D%/libcoll/horovod/_coordinator.py %D%/libcoll/horovod/_numpy.py \
	%D%/libcoll/horovod/_processes.py %D%/libcoll/horovod/_timeline.py \
	%D%/libcoll/horovod/_torch.py %D%/libcoll/horovod/elastic.py \
	%D%/libcoll/horovod/callbacks.py %D%/libcoll/horovod/compression.py \
	%D%/libcoll/horovod/functions.py %D%/libcoll/horovod/keras.py \
	%D%/libcoll/horovod/ops.py %D%/libcoll/horovod/optimizer.py \
	%D%/libcoll/horovod/sync_batch_norm.py %D%/libcoll/horovod/tensorflow.py \
	%D%/libcoll/horovod/torch.py
EXTRA_DIST += $(python_package) $(horovod_package) %D%/README.md %D%/entry_points.txt %D%/libcoll_torch.py \
	%D%/pyproject.toml %D%/setup.py \
	%D%/tests/elastic_ranks.py %D%/tests/faults.py %D%/tests/forked.py %D%/tests/gpu.py \
	%D%/tests/horovod_faults.py %D%/tests/horovod_ranks.py \
	%D%/tests/keras_ranks.py %D%/tests/ranks.py %D%/tests/torch_ranks.py
if WITH_PYTHON
collpythondir = $(pythondir)/libcoll
collpython_DATA = $(python_package)
collhorovoddir = $(collpythondir)/horovod
collhorovod_DATA = $(horovod_package)
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

# A wheel, with libcoll and what it needs in it, and an sdist of the package alone.
wheel_dir = bindings/python/dist
.PHONY: wheel
wheel: all
	rm -rf $(wheel_dir) && $(MKDIR_P) $(wheel_dir)
	$(AM_V_GEN)$(MAKE) $(AM_MAKEFLAGS) install-binPROGRAMS \
	    DESTDIR=$(abs_builddir)/$(wheel_dir)/root > $(wheel_dir)/log 2>&1 || \
	    { cat $(wheel_dir)/log; exit 1; }
	$(AM_V_at)for python in $(PYTHON) python3 /usr/bin/python3; do \
	    $$python -c 'import setuptools, wheel' 2> /dev/null || continue; \
	    exec $$python $(top_srcdir)/%D%/wheel/build.py --top $(top_srcdir) \
	        --ucx "`$(PKG_CONFIG) --variable=libdir ucx`" --bin $(wheel_dir)/root$(bindir) \
	        --lib $(wheel_dir)/root$(libdir) $(wheel_dir); \
	done; \
	echo "no python3 with setuptools and wheel; install them (Debian:" \
	    "apt-get install python3-setuptools python3-wheel)" >&2; exit 1
	$(AM_V_at)rm -rf $(wheel_dir)/root $(wheel_dir)/log
CLEANFILES += $(wheel_dir)/*.whl $(wheel_dir)/*.tar.gz
EXTRA_DIST += %D%/wheel/build.py %D%/wheel/programs.py

scripts += %D%/tests/elastic.sh %D%/tests/horovod.sh
scripts += %D%/tests/python.sh %D%/tests/torch.sh %D%/tests/wheel.sh
long_scripts += %D%/tests/deepspeed.sh %D%/tests/examples.sh %D%/tests/keras.sh
