# what this machine is made of
libcore_la_SOURCES += %D%/topo.h %D%/peer.h %D%/fabric.h %D%/machine.h %D%/topo.c %D%/hwloc.c \
	%D%/verbs.c %D%/net.c %D%/text.c %D%/trial.c %D%/within.c \
	%D%/fabric.c %D%/fabric_attach.c %D%/fabric_file.c %D%/fabric_graph.c \
	%D%/fabric_hwloc.c %D%/fabric_int.h %D%/fabric_levels.c %D%/fabric_net.c %D%/fabric_price.c \
	%D%/fabric_price.h %D%/fabric_ring.c %D%/fabric_route.c %D%/fabric_seats.c %D%/fabric_text.c \
	%D%/fabric_words.c %D%/fabric_words.h %D%/order.c %D%/order_ring.c
