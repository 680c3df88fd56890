/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_lobby.h - where newcomers wait until the ranks let them in.
 *
 * The ranks and the newcomers connect, and prove the job's secret.  lib/boot/lobby.h has
 * the words.
 */
#ifndef COLL_TOOLS_COLLRUN_LOBBY_H
#define COLL_TOOLS_COLLRUN_LOBBY_H

struct lobby;

/* Serve at a listening socket, which is the lobby's from now on.
 *
 * Shapes:    secret: the text in the ranks' COLL_JOB_SECRET.
 * Result:    NULL after an error message.
 */
struct lobby *lobby_open(int listen_fd, const char *secret);
void lobby_close(struct lobby *lobby); /* NULL: does nothing */

/* Return a descriptor that is readable when lobby_hear() has something to do. */
int lobby_fd(const struct lobby *lobby);

/* Does this newcomer wait here? */
int lobby_has(const struct lobby *lobby, int newcomer);

/* Drop the connection of a newcomer that waits here or has got a seat, as its host is
 * gone. */
void lobby_forget(struct lobby *lobby, int newcomer);

/* Serve those who have sent something: 1 and a newcomer that has got a seat in a group of
 * ranks; 0 nothing more. */
int lobby_hear(struct lobby *lobby, int *newcomer);

#endif
