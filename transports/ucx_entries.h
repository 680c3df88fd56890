/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_entries.h - the UCX functions that libcoll calls, as one list of names; plain text
 * for the preprocessor, without any header of UCX.
 */
#ifndef COLL_TRANSPORTS_UCX_ENTRIES_H
#define COLL_TRANSPORTS_UCX_ENTRIES_H

#define COLL__UCX_MAP(X)                                                       \
    X(ucp_am_data_release)                                                     \
    X(ucp_am_recv_data_nbx)                                                    \
    X(ucp_am_send_nbx)                                                         \
    X(ucp_cleanup)                                                             \
    X(ucp_config_modify)                                                       \
    X(ucp_config_read)                                                         \
    X(ucp_config_release)                                                      \
    X(ucp_context_query)                                                       \
    X(ucp_ep_close_nbx)                                                        \
    X(ucp_ep_create)                                                           \
    X(ucp_ep_flush_nbx)                                                        \
    X(ucp_ep_print_info)                                                       \
    X(ucp_get_version)                                                         \
    X(ucp_get_version_string)                                                  \
    X(ucp_init_version)                                                        \
    X(ucp_request_free)                                                        \
    X(ucp_worker_create)                                                       \
    X(ucp_worker_destroy)                                                      \
    X(ucp_worker_get_address)                                                  \
    X(ucp_worker_progress)                                                     \
    X(ucp_worker_release_address)                                              \
    X(ucp_worker_set_am_recv_handler)                                          \
    X(ucs_status_string)

#endif
