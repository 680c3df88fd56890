/* SPDX-License-Identifier: BSD-3-Clause */
/* listener_int.h - what listener.c (gates, visitors) and listener_sockets.c (listening
 * sockets) have in common.  All of it is called with the reactor's lock held.
 */
#ifndef COLL_LIB_NET_LISTENER_INT_H
#define COLL_LIB_NET_LISTENER_INT_H

#include "lib/net/listener.h"

/* Have a seat for one more visitor: sends away the oldest that has said
 * nothing whole, or one that has been about its proof for long.
 *
 * Shapes:    is_full: the process has no descriptor left, so one must go.
 * Result:    whether there is a seat now.
 */
int coll__listener_seat(int is_full);

/* Judge who comes by this connection; fd is the listener's. */
void coll__listener_admit(int fd);

/* Say what has not been said of strangers, if it is time; returns when it will
 * be, or 0 when nothing is unsaid. */
double coll__listener_report(void);

/* Listen again after a want of seats. */
void coll__listener_resume(void);

/* See that coll__listener_report() is called at this time, if there is a listener
 * then. */
void coll__listener_remind(double when);

/* Close every listener: nobody is awaited. */
void coll__listener_close(void);

#endif
