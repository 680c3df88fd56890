# the command line of every program; knows nothing of libcoll
noinst_LTLIBRARIES += libprogram.la
libprogram_la_SOURCES = %D%/common/near.h %D%/common/program.c %D%/common/program.h \
	%D%/common/program_help.c %D%/common/program_value.c \
	%D%/common/size.h %D%/common/speaks.h

# results as a table, JSON or CSV
noinst_LTLIBRARIES += libtable.la
libtable_la_SOURCES = %D%/common/table.c %D%/common/table.h
libtable_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libtable_la_LIBADD = $(JANSSON_LIBS) -lm

# the CUDA driver for programs, found at run time
if HAVE_CUDA
noinst_LTLIBRARIES += libcudafind.la
libcudafind_la_SOURCES = %D%/common/cuda.c %D%/common/cuda.h
libcudafind_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
libcudafind_la_LIBADD = -ldl
endif
EXTRA_DIST += %D%/common/cuda.c %D%/common/cuda.h

include %D%/sim/local.mk

# coll_info, coll_tune, collrun and coll_history: for users and operators; they link libcoll.la
# only, and collrun contains the file of the words that it exchanges with ranks
bin_PROGRAMS += tools/coll_info tools/coll_tune tools/collrun tools/coll_history
tools_coll_history_SOURCES = %D%/coll_history.c %D%/coll_history.h %D%/coll_history_read.c \
	%D%/coll_history_metrics.c %D%/coll_history_slow.c
tools_coll_history_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_coll_history_LDADD = libprogram.la libcoll.la $(JANSSON_LIBS) -lm
tools_coll_info_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_coll_info_LDADD = libprogram.la libtable.la libcoll.la $(JANSSON_LIBS)
tools_collrun_SOURCES = %D%/collrun.c %D%/collrun.h %D%/collrun_args.c \
	%D%/common/cores.h %D%/collrun_job.c \
	%D%/collrun_job.h %D%/collrun_start.c %D%/collrun_output.c \
	%D%/collrun_scaling.c %D%/collrun_bind.c %D%/collrun_check.c %D%/collrun_hosts.c \
	%D%/collrun_hosts.h %D%/collrun_hostlist.c %D%/collrun_link.c \
	%D%/collrun_choose.c %D%/collrun_files.c %D%/collrun_variables.c \
	%D%/collrun_ended.c %D%/collrun_place.c %D%/collrun_tree.c %D%/collrun_tree.h \
	%D%/collrun_agents.c %D%/collrun_agents.h %D%/collrun_discovery.c \
	%D%/collrun_discovery.h %D%/collrun_endpoint.c %D%/collrun_endpoint.h \
	%D%/collrun_fleet.c %D%/collrun_fleet.h %D%/collrun_serve.c %D%/collrun_serve.h %D%/collrun_signals.c \
	%D%/collrun_elastic.c %D%/collrun_lobby.c %D%/collrun_lobby.h \
	%D%/collrun_link.h %D%/collrun_meet.c %D%/collrun_nodes.c %D%/collrun_nodes.h \
	lib/net/auth.c lib/net/auth.h lib/net/words.c lib/net/words.h
tools_collrun_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(SODIUM_CFLAGS)
tools_collrun_LDADD = libprogram.la libtable.la libcoll.la $(JANSSON_LIBS) $(SODIUM_LIBS) -lm
tools_coll_tune_SOURCES = %D%/common/cores.h %D%/common/size.h %D%/common/speaks.h \
	%D%/coll_tune.c %D%/coll_tune.h \
	%D%/coll_tune_file.c %D%/coll_tune_judge.c %D%/coll_tune_measure.c
tools_coll_tune_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_coll_tune_LDADD = libprogram.la libtable.la libcoll.la $(JANSSON_LIBS) -lm

# coll_plan shows the library's internals, so it links libcore.la
bin_PROGRAMS += tools/coll_plan
tools_coll_plan_SOURCES = %D%/plan/args.c %D%/plan/check.c \
	%D%/plan/check_all.c %D%/plan/crossover.c %D%/plan/explain.c \
	%D%/plan/json.c %D%/plan/machine.c %D%/plan/main.c %D%/plan/show.c %D%/plan/simulate.c \
	%D%/plan/tool.h
tools_coll_plan_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_coll_plan_LDADD = libprogram.la libstudy.la libcore.la $(JANSSON_LIBS)
