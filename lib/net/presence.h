/* SPDX-License-Identifier: BSD-3-Clause */
/* presence.h - is another process really on this host?
 *
 * Hosts that are clones of one snapshot have the same boot id, the same numbers of
 * namespaces and the same name, so no id can tell them apart.  A process therefore binds
 * an abstract unix socket to a name that is made of a token of its own, and tells others
 * the token.  They ask their kernel for that name: it is in the kernel's memory exactly
 * where both have the same kernel and the same network namespace.
 */
#ifndef COLL_LIB_NET_PRESENCE_H
#define COLL_LIB_NET_PRESENCE_H

#define COLL__PRESENCE_BYTES 16

/* Draw a token and bind its name, for as long as the descriptor is open.
 *
 * Result:    the descriptor, the caller's to close; or -1, and the token is zero, by
 *            which nobody is missed.
 */
int coll__presence_open(unsigned char token[COLL__PRESENCE_BYTES]);

/* Tell this process's own token, which is held while the reactor is in use; the
 * reactor's lock is held. */
void coll__presence_self(unsigned char token[COLL__PRESENCE_BYTES]);

/* Say that no process of this host holds the token; 0 also where it is zero, or this
 * process may not ask. */
int coll__presence_is_missing(const unsigned char token[COLL__PRESENCE_BYTES]);

#endif
