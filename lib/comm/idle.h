/* SPDX-License-Identifier: BSD-3-Clause */
/* idle.h - coll_config.idle: what a thread that waits for other ranks does beside. */
#ifndef COLL_LIB_COMM_IDLE_H
#define COLL_LIB_COMM_IDLE_H

/* A function to call again and again; run NULL: none. */
struct coll__idle {
    void (*run)(void *arg);
    void *arg;
};

#endif
