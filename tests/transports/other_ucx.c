/* SPDX-License-Identifier: BSD-3-Clause */
/* other_ucx.c - a libucp.so.0 to be found first, of another version than the one that
 * libcoll was built with.  It says its version, and can do nothing else.
 */
#include "transports/ucx_entries.h"

const char *ucp_get_version_string(void);

const char *ucp_get_version_string(void) { return "99.9.9"; }

/* All other functions are there; this name stands for one more of them. */
#define ucp_get_version_string ucp_of_no_name
#define DEFINE(name)                                                           \
    void name(void);                                                           \
    void name(void) {}
COLL__UCX_MAP(DEFINE)
