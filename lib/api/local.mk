# coll.h's functions, and the table of what is kept on a communicator
libcore_la_SOURCES += \
	%D%/attachments.c \
	%D%/coll.c \
	%D%/comms.c \
	%D%/creation.c \
	%D%/elastic.c \
	%D%/feature.c \
	%D%/mem_alloc.c \
	%D%/mem_stats.c \
	%D%/plan_query.c \
	%D%/register.c \
	%D%/requests.c \
	%D%/topo_export.c \
	%D%/user_op.c
