/* SPDX-License-Identifier: BSD-3-Clause */
/* cma.h - reading straight from the memory of another process of this host.
 *
 * Not a transport: it moves bytes and knows no messages.  A transport between
 * the ranks of a host tells the receiver where a message lies in its sender,
 * and the receiver fetches it with one copy instead of two.
 *
 * Whether the kernel lets one process read another cannot be told from what
 * either of them knows (ptrace scope, seccomp, user and pid namespaces), so it
 * is tried: each rank publishes a token that says where a secret of its own
 * lies, and a rank that can fetch that secret can fetch anything.  A token is
 * for the ranks of one job, who trust each other; it opens nothing, since the
 * kernel's own checks stay as they are.
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
    int32_t pid;   /* in its own pid namespace; 0: reads are not offered */
    uint32_t zero; /* so that no byte is unset */
    unsigned char secret[CMA_SECRET_BYTES];
};

/* Say whether this process may read by process_vm_readv() at all, by reading
 * its own memory.
 *
 * Result:    COLL_OK, or COLL_ERR_UNSUPPORTED and why: the reason and the
 *            remedy, len bytes at most (CMA_WHY_BYTES are enough).  Being
 *            switched off (COLL_CMA=off) is such a reason.
 * Threads:   any.
 * Cost:      one system call.
 */
int coll__cma_usable(char *why, size_t len);

/* Fill in the token of this process.
 *
 * Result:    COLL_OK; or COLL_ERR_UNSUPPORTED, and a token that every probe
 *            refuses: it can be published all the same.
 * Ownership: the secret stays where it is as long as the process lives; a
 *            child made by fork() gets another one when it offers.
 * Threads:   any.
 */
int coll__cma_offer(struct coll__cma_token *mine);

/* Try whether this process can read the memory of the one that made the token.
 *
 * Result:    COLL_OK, or COLL_ERR_UNSUPPORTED and why (CMA_WHY_BYTES are
 *            enough): which of the kernel's checks said no, as far as that can
 *            be told, or that the pid is another process's here.
 * Threads:   any.
 * Cost:      one system call when all is well.
 */
int coll__cma_probe_why(const struct coll__cma_token *theirs, char *why,
                        size_t len);

/* The same; the reason is logged (info). */
int coll__cma_probe(const struct coll__cma_token *theirs);

/* Read len bytes at `remote` in process pid into dst.
 *
 * Shapes:    any length, 0 too; dst and remote need no alignment.
 * Result:    COLL_OK: all len bytes are there.
 * Errors:    COLL_ERR_PEER: the process is gone, or being killed;
 *            COLL_ERR_SYSTEM: its memory is gone, or it no longer lets itself
 *            be read; COLL_ERR_NOMEM.  Logged; dst[len] is then undefined.
 * Threads:   any.  The caller knows that pid is the process that it probed and
 *            that nobody writes remote[len] meanwhile.
 * Cost:      a system call for each GiB; blocks until all is copied.
 */
int coll__cma_read(int pid, void *dst, const void *remote, size_t len);

#endif
