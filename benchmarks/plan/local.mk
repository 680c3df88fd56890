# What the library does before it sends anything; these link the internals.
noinst_PROGRAMS += benchmarks/plan/plan_build
benchmarks_plan_plan_build_SOURCES = %D%/plan_build.c
benchmarks_plan_plan_build_LDADD = libprogram.la libtable.la libcore.la
