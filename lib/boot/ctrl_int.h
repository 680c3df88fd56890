/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_int.h - the control tree's insides, shared by ctrl*.c.
 *
 * Everything in struct coll__ctrl after `events` is under the reactor's lock.
 */
#ifndef COLL_LIB_BOOT_CTRL_INT_H
#define COLL_LIB_BOOT_CTRL_INT_H

#include "lib/boot/ctrl.h"
#include "lib/boot/door.h"
#include "lib/boot/link.h"
#include "lib/boot/tree.h"

enum ctrl_frame {
    CTRL_UP = 1, /* blocks of a subtree: id = which gathering, to = purpose */
    CTRL_DOWN,   /* the blocks of all, the same way back */
    CTRL_FAILED, /* id = -status, body = text; to every rank */
    CTRL_ASK,    /* from asks every rank; id = which question */
    CTRL_ANSWER  /* from answers to */
};

enum ctrl_purpose { PURPOSE_GATHER, PURPOSE_LEAVE };

/* A process of the group, as ranks tell each other at the start. */
struct ctrl_peer {
    unsigned char host[32]; /* boot id and network namespace, hashed */
    uint64_t pid_ns, pid;   /* pid_ns 0: not known */
    char host_name[48];
};

/* Watches a rank's process on this host. */
struct ctrl_watch {
    struct coll__source source; /* first */
    struct coll__ctrl *ctrl;
    int rank;
};

/* The gathering that this rank is in or that its children have begun. */
struct ctrl_gather {
    enum ctrl_purpose purpose;
    int is_entered, is_sent, is_done;
    size_t len;          /* of each block */
    unsigned char *mine; /* [span * len], then also everybody's at the root */
    unsigned char *all;  /* [size * len] when done; may be mine */
    struct {
        int is_here;
        enum ctrl_purpose purpose;
        uint64_t len;
        unsigned char *body;
    } up[COLL__MAX_CHILDREN]; /* per child */
};

/* This rank's question to the others. */
struct ctrl_question {
    uint32_t id;
    struct coll__ctrl_answer *answers; /* NULL when none is open */
    uint64_t *n_gathers;               /* [size], or NULL */
    int n_missing;
};

struct coll__ctrl {
    int rank, size, n_children;
    unsigned epoch;
    struct ctrl_peer *peers; /* [size] */
    struct coll__ctrl_events events;

    struct coll__gate gate; /* for the children */
    int has_gate, n_children_here;
    struct coll__link up, down[COLL__MAX_CHILDREN];
    struct ctrl_watch *watches;
    int n_watches;

    pthread_cond_t changed; /* anything below */
    int is_open;            /* events may be called */
    int is_leaving;         /* pidfds say nothing any more */
    int is_released;        /* all leave: the end of a link is in order */
    uint32_t n_gathers;     /* entered by this rank */
    struct ctrl_gather gather;
    struct ctrl_question question;

    int failed_status; /* 0 while the group lives */
    char failed_text[COLL__TEXT_MAX];
    int has_notice;          /* failed() is to be called */
    uint32_t *ask_ids;       /* [size]: the open question of each rank */
    unsigned char *is_asked; /* [size] */
    int n_pins;              /* events are being called */
    struct coll__task task;  /* to call them */
};

/* All below: lock held. */

/* Begin a frame from this rank. */
struct coll__frame coll__ctrl_frame(const struct coll__ctrl *ctrl,
                                    enum ctrl_frame type, uint32_t to,
                                    uint32_t id, size_t len);

/* Send to every neighbour but one (NULL: to all). */
void coll__ctrl_flood(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                      const void *body, const struct coll__link *except);

/* Write "rank 2 (pid 123 on host)". */
void coll__ctrl_name(const struct coll__ctrl *ctrl, int rank,
                     char text[COLL__TEXT_MAX]);

/* The group has failed: remember it, tell the others, wake who waits; and call
 * failed() when is_notice. */
void coll__ctrl_fail(struct coll__ctrl *ctrl, int status, const char *text,
                     const struct coll__link *from, int is_notice);
void coll__ctrl_died(struct coll__ctrl *ctrl, int rank,
                     const struct coll__link *from);

/* Go through this gathering; 0, or a status, logged. */
int coll__ctrl_gather(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                      const void *in, size_t len, void *out, double timeout);
int coll__ctrl_got_up(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame, unsigned char *body);
int coll__ctrl_got_down(struct coll__ctrl *ctrl,
                        const struct coll__frame *frame, unsigned char *body);
void coll__ctrl_gather_free(struct coll__ctrl *ctrl);

/* Ask everybody; n_gathers[size] is filled in too unless it is NULL. */
void coll__ctrl_question(struct coll__ctrl *ctrl, double timeout,
                         struct coll__ctrl_answer *answers,
                         uint64_t *n_gathers);
int coll__ctrl_got_ask(struct coll__ctrl *ctrl, struct coll__link *link,
                       const struct coll__frame *frame);
int coll__ctrl_got_answer(struct coll__ctrl *ctrl,
                          const struct coll__frame *frame,
                          const unsigned char *body);
void coll__ctrl_run_task(struct coll__task *task);

/* Watch the processes on this host; what cannot be watched is left out. */
void coll__ctrl_watch(struct coll__ctrl *ctrl);
void coll__ctrl_unwatch(struct coll__ctrl *ctrl);

/* The links' callbacks. */
void coll__ctrl_link_init(struct coll__ctrl *ctrl, struct coll__link *link,
                          int peer);

/* Connect the tree (lock not held); what is there is freed by the caller. */
int coll__ctrl_connect(struct coll__ctrl *ctrl, struct coll__boot *boot);

#endif
