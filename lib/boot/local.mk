libcore_la_SOURCES += %D%/boot.h %D%/boot.c %D%/list.c \
	%D%/env.c %D%/torchrun.c %D%/single.c %D%/oob.c %D%/id.c \
	%D%/auth.h %D%/auth.c \
	%D%/net.h %D%/net_addr.h %D%/net.c %D%/net_listen.c \
	%D%/reactor.h %D%/reactor.c \
	%D%/door.h %D%/knock.h %D%/door.c %D%/knock.c \
	%D%/tcp.h %D%/tcp_msg.h %D%/tcp.c %D%/tcp_host.c %D%/tcp_join.c \
	%D%/link.h %D%/link.c %D%/tree.h \
	%D%/ctrl.h %D%/ctrl_int.h %D%/ctrl.c %D%/ctrl_connect.c \
	%D%/ctrl_gather.c %D%/ctrl_ask.c %D%/ctrl_watch.c
if HAVE_PMIX
libcore_la_SOURCES += %D%/pmix.c
endif
