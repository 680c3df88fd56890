# what this machine is made of
libcore_la_SOURCES += %D%/topo.h %D%/peer.h %D%/fabric.h %D%/machine.h %D%/topo.c %D%/hwloc.c \
	%D%/verbs.c %D%/net.c %D%/text.c %D%/trial.c %D%/within.c
