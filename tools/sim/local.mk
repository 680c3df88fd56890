# machines that need not exist, and plans that run on them
libstudy_la_SOURCES += \
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
	%D%/order.c \
	%D%/order_ring.c \
	%D%/sim.c \
	%D%/sim.h \
	%D%/sim_queue.c \
	%D%/sim_queue.h \
	%D%/sim_steps.c \
	%D%/sim_steps.h \
	%D%/view_fabric.c
