/* SPDX-License-Identifier: BSD-3-Clause */
/* listener_int.h - what listener.c (gates, visitors) and listener_sockets.c (listening
 * sockets) share.  All functions are called with the reactor's lock held.
 */
#ifndef COLL_LIB_NET_LISTENER_INT_H
#define COLL_LIB_NET_LISTENER_INT_H

#include "lib/net/listener.h"

/* s, until a visitor has proved itself: 10, but in tests. */
extern double coll__listener_patience;

/* Find a seat for one more visitor.  If there is none, close the oldest visitor without
 * a complete hello, or one that takes long for its proof.
 *
 * Shapes:    is_full: the process has no descriptor left, so one visitor must go.
 * Result:    whether there is a seat now.
 */
int coll__listener_seat(int is_full);

/* Take on a new connection as a visitor; the listener owns fd. */
void coll__listener_admit(int fd);

/* Report the strangers not reported yet, if it is time.  Returns when the next report is
 * due, or 0 if there is nothing to report. */
double coll__listener_report(void);

/* Accept connections again after all seats were taken. */
void coll__listener_resume(void);

/* Schedule coll__listener_report() for this time, if a listening socket is open then. */
void coll__listener_remind(double when);

/* Close every listening socket: no gate is left. */
void coll__listener_close(void);

#endif
