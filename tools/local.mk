# coll_info, collrun

bin_PROGRAMS += collrun
collrun_SOURCES = %D%/collrun.c %D%/collrun.h %D%/collrun_job.c \
	%D%/collrun_job.h %D%/collrun_start.c %D%/collrun_output.c \
	%D%/collrun_bind.c %D%/collrun_hosts.c %D%/collrun_check.c
collrun_LDADD = libcoll.la -lm
