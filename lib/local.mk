# The library: a convenience library that tests link (its internals visible), and
# libcoll.la, which is the same with only coll_* exported.  libstudy.la holds what
# tools and tests need beside it: proofs of every algorithm, simulations, dumps.
collincludedir = $(includedir)/coll
collinclude_HEADERS = include/coll/coll.h include/coll/cuda.h

noinst_LTLIBRARIES += libcore.la
libcore_la_CFLAGS = $(AM_CFLAGS) $(UCX_CFLAGS) $(HWLOC_CFLAGS) $(VERBS_CFLAGS) \
	$(JANSSON_CFLAGS) $(SODIUM_CFLAGS) $(PMIX_CFLAGS)
libcore_la_LIBADD = $(HWLOC_LIBS) $(JANSSON_LIBS) $(SODIUM_LIBS) \
	-ldl -lpthread -lm
libcore_la_SOURCES = \
	%D%/trace/history.c %D%/trace/history.h \
	%D%/trace/log.c %D%/trace/log.h %D%/trace/log_queue.c \
	%D%/trace/metrics.c %D%/trace/metrics.h \
	%D%/trace/rank_file.c %D%/trace/rank_file.h \
	%D%/trace/recorder.c %D%/trace/recorder.h \
	%D%/trace/profile.c %D%/trace/timeline.c %D%/trace/trace.c \
	%D%/trace/trace.h \
	%D%/type/half.h \
	%D%/type/signature.c %D%/type/signature.h \
	%D%/type/names.c \
	%D%/type/op.c %D%/type/op.h \
	%D%/util/fence.c %D%/util/fence.h \
	%D%/util/float_state.h \
	%D%/util/files.c %D%/util/files.h \
	%D%/util/futex.c %D%/util/futex.h \
	%D%/util/limit.c %D%/util/limit.h \
	%D%/util/lock.c %D%/util/lock.h \
	%D%/util/map.c %D%/util/map.h \
	%D%/util/param.c %D%/util/param.h \
	%D%/util/read.c %D%/util/read.h \
	%D%/util/sort.h \
	%D%/util/spawn.c %D%/util/spawn.h \
	%D%/util/text.c %D%/util/text.h \
	%D%/util/util.c %D%/util/util.h \
	%D%/util/yield.c %D%/util/yield.h

include %D%/api/local.mk
include %D%/comm/local.mk
include %D%/run/local.mk
include %D%/stream/local.mk
noinst_LTLIBRARIES += libstudy.la
libstudy_la_CFLAGS = $(libcore_la_CFLAGS)
libstudy_la_SOURCES =

include %D%/plan/local.mk
include %D%/proof/local.mk
include %D%/price/local.mk

include %D%/algo/local.mk
include %D%/order/local.mk
include %D%/tags/local.mk
include %D%/exec/local.mk
include %D%/device/local.mk
include %D%/net/local.mk
include %D%/boot/local.mk
include %D%/ctrl/local.mk
include %D%/topo/local.mk

lib_LTLIBRARIES += libcoll.la
libcoll_la_SOURCES =
libcoll_la_LIBADD = libcore.la
# nodelete: its threads, and what it has others call at a thread's or the program's
# end, are there after a dlclose(), too
libcoll_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(COLL_LT_VERSION) \
	-export-symbols-regex '^coll_[a-z]' -no-undefined -Wl,-z,nodelete
