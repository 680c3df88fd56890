/* SPDX-License-Identifier: BSD-3-Clause */
/* cma.h - reading straight from the memory of another process of this host.
 *
 * This is no transport: it moves bytes and knows no messages.  A transport between ranks
 * of a host tells the receiver where a message is in the sender's memory, and the
 * receiver fetches it with one copy instead of two.
 *
 * Neither process can tell beforehand whether the kernel lets one read the other (ptrace
 * scope, seccomp, user and pid namespaces), so it is tried.  Each rank publishes a token
 * with the address of a secret; a rank that can read the secret can read all of that
 * process.  Tokens are for the ranks of one job, which trust each other.  A token grants
 * nothing, since the kernel still makes its checks.
 */
#ifndef COLL_TRANSPORTS_CMA_H
#define COLL_TRANSPORTS_CMA_H

#include <stddef.h>
#include <stdint.h>

#define CMA_SECRET_BYTES 16
#define CMA_WHY_BYTES 256

/* What a rank publishes about itself; plain bytes, for an allgather. */
struct coll__cma_token {
    uint64_t addr; /* of the secret in that process */
    int32_t pid;   /* pid in the rank's own namespace; 0: it may not be read */
    uint32_t zero; /* so that no byte is unset */
    unsigned char secret[CMA_SECRET_BYTES];
};

/* Test process_vm_readv() by reading this process's own memory.
 *
 * Result:    COLL_OK, or COLL_ERR_UNSUPPORTED and `why`: the reason and the remedy, len
 *            bytes at most (CMA_WHY_BYTES are enough).  Being switched off (COLL_CMA=off)
 *            is such a reason.
 * Threads:   any.
 * Cost:      one system call.
 */
int coll__cma_usable(char *why, size_t len);

/* Fill in the token of this process.
 *
 * Result:    COLL_OK; or COLL_ERR_UNSUPPORTED and a token that every probe refuses, which
 *            can still be published.
 * Ownership: the secret keeps its address as long as the process lives; a child made by
 *            fork() makes its own.
 * Threads:   any.
 */
int coll__cma_offer(struct coll__cma_token *mine);

/* Test whether this process can read the memory of the token's process.
 *
 * Result:    COLL_OK, or COLL_ERR_UNSUPPORTED and `why` (CMA_WHY_BYTES are enough): which
 *            of the kernel's checks said no, as far as that can be told, or that the pid
 *            is another process's here.
 * Threads:   any.
 * Cost:      one system call if the read succeeds.
 */
int coll__cma_probe_why(const struct coll__cma_token *theirs, char *why,
                        size_t len);

/* Do so, and log the reason (info). */
int coll__cma_probe(const struct coll__cma_token *theirs);

/* Read len bytes at `remote` in process pid into dst.
 *
 * Shapes:    any length, 0 too; dst and remote need no alignment.
 * Result:    COLL_OK: all len bytes are there.
 * Errors:    COLL_ERR_PEER: the process is gone, or being killed;
 *            COLL_ERR_SYSTEM: its memory is gone, or it no longer lets itself
 *            be read; COLL_ERR_NOMEM.  Logged; dst[len] is then undefined.
 * Threads:   any.  The caller makes sure that pid is the process that it probed, and that
 *            no rank writes remote[len] meanwhile.
 * Cost:      a system call for each GiB; blocks until all is copied.
 */
int coll__cma_read(int pid, void *dst, const void *remote, size_t len);

#endif
