libcore_la_SOURCES += \
	%D%/auth.c %D%/auth.h \
	%D%/connector.c %D%/connector.h \
	%D%/listener.c %D%/listener.h %D%/listener_int.h \
	%D%/listener_sockets.c \
	%D%/this_host.c %D%/this_host.h \
	%D%/handshake.c %D%/handshake.h \
	%D%/link.c %D%/link.h \
	%D%/net.c %D%/net.h %D%/net_addr.h \
	%D%/net_in_flight.c \
	%D%/net_listen.c \
	%D%/net_own.c \
	%D%/presence.c %D%/presence.h \
	%D%/reactor.c %D%/reactor.h \
	%D%/fd_limit.c %D%/fd_limit.h \
	%D%/tree.h \
	%D%/wire.c %D%/wire.h \
	%D%/words.c %D%/words.h
