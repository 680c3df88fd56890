/* SPDX-License-Identifier: BSD-3-Clause */
/* apart.h - a device whose memory the host cannot touch. */
#ifndef COLL_TESTS_TRAINER_APART_H
#define COLL_TESTS_TRAINER_APART_H

/* While open, the host can touch the device's memory too, as a collective must.  Each
 * apart_open() has its apart_close(). */
void apart_open(void);
void apart_close(void);

#endif
