# Unit tests in Check link libcore.la, so that they see the internals.

if HAVE_CHECK
# transports, all of them
check_PROGRAMS += tests/conform
TESTS += tests/conform
tests_conform_SOURCES = %D%/conform.c %D%/conform.h %D%/conform_world.c
tests_conform_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_conform_LDADD = libcore.la $(CHECK_LIBS)
endif
