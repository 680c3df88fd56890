# The library: a convenience library that tests link (its internals visible), and
# libcoll.la, which is the same with only coll_* exported.
collincludedir = $(includedir)/coll
collinclude_HEADERS = include/coll/coll.h

noinst_LTLIBRARIES += libcore.la
libcore_la_CFLAGS = $(AM_CFLAGS) $(UCX_CFLAGS) $(HWLOC_CFLAGS) $(VERBS_CFLAGS) \
	$(JANSSON_CFLAGS) $(SODIUM_CFLAGS) $(PMIX_CFLAGS)
libcore_la_LIBADD = $(UCX_LIBS) $(HWLOC_LIBS) $(VERBS_LIBS) $(JANSSON_LIBS) \
	$(SODIUM_LIBS) -ldl -lpthread -lm
libcore_la_SOURCES = \
	%D%/trace/head.h \
	%D%/trace/history.c %D%/trace/history.h \
	%D%/trace/log.c %D%/trace/log.h \
	%D%/util/param.c %D%/util/param.h \
	%D%/util/util.c %D%/util/util.h

include %D%/api/local.mk
include %D%/plan/local.mk
include %D%/algo/local.mk
include %D%/exec/local.mk
include %D%/device/local.mk
include %D%/boot/local.mk
include %D%/topo/local.mk

lib_LTLIBRARIES += libcoll.la
libcoll_la_SOURCES =
libcoll_la_LIBADD = libcore.la
libcoll_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(COLL_LT_VERSION) \
	-export-symbols-regex '^coll_[a-z]' -no-undefined
