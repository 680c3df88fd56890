libcore_la_SOURCES += %D%/boot.h %D%/boot.c %D%/list.c \
	%D%/env.c %D%/pmi.c %D%/ompi.c %D%/torchrun.c %D%/horovod.c %D%/slurm.c \
	%D%/hostlist.c %D%/hostlist.h %D%/launcher.c %D%/launcher.h %D%/ancestor.c %D%/word.c %D%/word.h \
	 %D%/single.c %D%/oob.c %D%/id.c \
	%D%/tcp.h %D%/tcp_msg.h %D%/tcp.c %D%/tcp_host.c %D%/tcp_join.c \
	%D%/tcp_book.h %D%/tcp_book.c
if HAVE_PMIX
libcore_la_SOURCES += %D%/pmix.c
endif
