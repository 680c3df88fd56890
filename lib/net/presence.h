/* SPDX-License-Identifier: BSD-3-Clause */
/* presence.h - is another process really on this host?
 *
 * Hosts that are clones of one snapshot have the same boot id, the same numbers of
 * namespaces and the same name, so no id can tell them apart.  Therefore a process draws
 * a random token, binds an abstract unix socket to a name made from it, and tells others
 * the token.  They look for that name: the kernel finds it only if both processes have
 * the same kernel and the same network namespace.
 */
#ifndef COLL_LIB_NET_PRESENCE_H
#define COLL_LIB_NET_PRESENCE_H

#define COLL__PRESENCE_BYTES 16

/* Draw a token and bind its name, for as long as the descriptor is open.
 *
 * Result:    the descriptor, the caller's to close; or -1, and the token is zero, which
 *            coll__presence_is_missing() never reports as missing.
 */
int coll__presence_open(unsigned char token[COLL__PRESENCE_BYTES]);

/* Return this process's own token, which is bound while the reactor is in use; the
 * reactor's lock is held. */
void coll__presence_self(unsigned char token[COLL__PRESENCE_BYTES]);

/* Is there no process on this host with this token?  Also 0 if the token is zero, or
 * this process is not allowed to look. */
int coll__presence_is_missing(const unsigned char token[COLL__PRESENCE_BYTES]);

#endif
