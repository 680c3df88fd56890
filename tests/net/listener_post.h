/* SPDX-License-Identifier: BSD-3-Clause */
/* listener_post.h - groups that this process lets in, and who connects to it. */
#ifndef COLL_TESTS_LISTENER_POST_H
#define COLL_TESTS_LISTENER_POST_H

#include "lib/net/connector.h"
#include "lib/net/listener.h"
#include "tests/support/patience.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/types.h>

#define TIMEOUT patient(30)

/* Give this process a network of its own, where that is allowed: its ports are then taken
 * by nobody else, nor those of others by it.  Before there are threads. */
void post_seclude(void);

struct post {
    struct coll__gate gate; /* first */
    atomic_int n_arrived;
    struct coll__addr at;
};

/* Await the group whose secret is made of this byte, at a loopback address. */
void post_open(struct post *post, int secret);
void post_close(struct post *post);

/* Wait until so many have come in. */
void post_await(struct post *post, int n);

/* The secret of the group that callers look for: the byte 5, over and over. */
const unsigned char *post_secret(void);

/* Look for that group; COLL_OK, or the status of coll__connector(). */
int post_call(const struct coll__addr *addrs, int n, double timeout);

/* Look for it in vain, for 1 s, 2 s, 4 s, ..., until the reason has these texts, of which
 * the last is NULL. */
void post_call_until(const struct coll__addr *addrs, int n,
                     const char *const *texts);

/* Check that the reason of the last that failed has this text. */
void post_says(const char *text);

/* A process of another job, at an address of its own; end one. */
pid_t post_other_job(struct coll__addr *at);
void post_end(pid_t pid);

/* Let this process have so many descriptors. */
void post_allow_files(rlim_t n);

/* A handler that drops the log's lines. */
void post_drop_line(enum coll_log_level level, const char *part,
                    const char *text, void *arg);

#endif
