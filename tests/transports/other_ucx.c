/* SPDX-License-Identifier: BSD-3-Clause */
/* other_ucx.c - a library to preload: what of UCX says its version, as if the one
 * that is loaded were not the one that libcoll was built with. */
const char *ucp_get_version_string(void);

const char *ucp_get_version_string(void) { return "99.9.9"; }
