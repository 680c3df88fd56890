libcore_la_SOURCES += \
	%D%/list.c \
	%D%/self.c \
	%D%/shm.c \
	%D%/transport.h
