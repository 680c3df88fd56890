libcore_la_SOURCES += \
	%D%/coll.c \
	%D%/feature.c \
	%D%/mem_alloc.c \
	%D%/mem_stats.c \
	%D%/params.c \
	%D%/register.c \
	%D%/topo_export.c \
	%D%/user_op.c
