# programs for users and operators; they link libcoll.la only
bin_PROGRAMS += tools/coll_info
tools_coll_info_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_coll_info_LDADD = libcoll.la $(JANSSON_LIBS)
