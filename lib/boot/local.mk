libcore_la_SOURCES += %D%/boot.h %D%/boot.c %D%/list.c %D%/list.h \
	%D%/env.c %D%/pmi.c %D%/ompi.c %D%/torchrun.c %D%/horovod.c %D%/slurm.c \
	%D%/handle.c %D%/lobby.c %D%/lobby.h \
	%D%/hostlist.c %D%/hostlist.h %D%/launcher.c %D%/launcher.h %D%/ancestor.c %D%/ancestor.h %D%/joined.c %D%/joined.h %D%/ended.c %D%/ended.h %D%/launcher_env.c %D%/launcher_env.h \
	 %D%/single.c %D%/oob.c %D%/id.c %D%/id.h \
	%D%/rendezvous.h %D%/rendezvous_msg.h %D%/rendezvous.c %D%/rendezvous_root.c %D%/rendezvous_join.c \
	%D%/rendezvous_seats.c %D%/rendezvous_table.h %D%/rendezvous_table.c
if HAVE_PMIX
libcore_la_SOURCES += %D%/pmix.c
endif
