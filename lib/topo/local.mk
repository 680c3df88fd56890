# what this machine is made of, and machines that need not exist
libcore_la_SOURCES += \
	%D%/fabric.c \
	%D%/fabric.h \
	%D%/fabric_attach.c \
	%D%/fabric_file.c \
	%D%/fabric_graph.c \
	%D%/fabric_hwloc.c \
	%D%/fabric_int.h \
	%D%/fabric_levels.c \
	%D%/fabric_net.c \
	%D%/fabric_price.c \
	%D%/fabric_price.h \
	%D%/fabric_ring.c \
	%D%/fabric_route.c \
	%D%/fabric_seats.c \
	%D%/fabric_text.c \
	%D%/fabric_words.c \
	%D%/fabric_words.h \
	%D%/hwloc.c \
	%D%/machine.h \
	%D%/net.c \
	%D%/order.c \
	%D%/order_ring.c \
	%D%/peer.h \
	%D%/text.c \
	%D%/topo.c \
	%D%/topo.h \
	%D%/trial.c \
	%D%/verbs.c \
	%D%/within.c
