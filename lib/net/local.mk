libcore_la_SOURCES += \
	%D%/auth.c %D%/auth.h \
	%D%/dial.c %D%/dial.h \
	%D%/door.c %D%/door.h %D%/door_int.h \
	%D%/door_listen.c \
	%D%/host.c %D%/host.h \
	%D%/knock.c %D%/knock.h \
	%D%/link.c %D%/link.h \
	%D%/net.c %D%/net.h %D%/net_addr.h \
	%D%/net_in_flight.c \
	%D%/net_listen.c \
	%D%/net_own.c \
	%D%/reactor.c %D%/reactor.h \
	%D%/room.c %D%/room.h \
	%D%/tree.h \
	%D%/wire.c %D%/wire.h
