/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_int.h - the control tree's insides, shared by ctrl*.c.
 *
 * Everything in struct coll__ctrl after `events` is under the reactor's lock.
 */
#ifndef COLL_LIB_CTRL_CTRL_INT_H
#define COLL_LIB_CTRL_CTRL_INT_H

#include "lib/boot/launcher.h"
#include "lib/ctrl/ctrl.h"
#include "lib/net/connector.h"
#include "lib/net/link.h"
#include "lib/net/presence.h"
#include "lib/net/tree.h"

enum ctrl_frame {
    CTRL_UP = 1, /* blocks of a subtree: id = which gathering, to = purpose */
    CTRL_DOWN,   /* the blocks of all, the same way back */
    CTRL_FAILED, /* id = -status, to = the rank that the words are about, or
                  * NOBODY, body = the words; to every rank */
    CTRL_ASK,    /* from asks to about a call; id = which question */
    CTRL_ANSWER, /* from answers to */
    CTRL_CALL,   /* a rank wants all to be asked about its call; to the root */
    CTRL_QUERY,  /* the root asks them; id = which round */
    CTRL_ROLL,   /* what a subtree says */
    CTRL_RESULT, /* what all have said, the same way back */
    CTRL_APART   /* a part that was being made has failed; to every rank */
};

#define NOBODY UINT32_MAX

enum ctrl_purpose { PURPOSE_GATHER, PURPOSE_LEAVE };

/* A process of the group, as ranks tell each other at the start. */
struct ctrl_peer {
    unsigned char host[32]; /* boot id and network namespace, hashed; another
                             * one where it is a clone of this rank's */
    unsigned char process[COLL__PROCESS_BYTES];
    unsigned char presence[COLL__PRESENCE_BYTES];
    uint64_t pid_ns, pid; /* pid_ns 0: not known */
    char host_name[48];
};

/* Where a rank awaits its children. */
struct ctrl_place {
    int32_t n_addrs; /* 0: a leaf; negative: the status of why it cannot */
    int32_t n_lacking; /* descriptors, if that is why */
    struct coll__addr addrs[COLL__MAX_ADDRS];
};

/* What a rank hands in at the bootstrap. */
struct ctrl_card {
    struct ctrl_peer peer;
    struct ctrl_place place;
};

/* Watches a rank's process on this host; in the list of all that do. */
struct ctrl_process;
struct ctrl_watch {
    struct coll__ctrl *ctrl;
    int rank;
    struct ctrl_process *process; /* NULL in a forked child */
    struct ctrl_watch *next, **at;
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

/* What is asked about: an operation, judged by the communicator, or a gathering,
 * of.head.seq being its number. */
enum ctrl_subject { SUBJECT_OPERATION, SUBJECT_GATHERING };

struct ctrl_call {
    enum ctrl_subject subject;
    struct coll__ctrl_call of;
};

/* This rank's question to another one; the last. */
struct ctrl_question {
    uint32_t id;
    struct coll__ctrl_call call;
    double asked, answered; /* when; answered is 0 before */
    int is_heard;           /* whoever asked knows the answer */
    struct coll__ctrl_roll roll;
};

/* The round of questions to all ranks: one at a time. */
struct ctrl_round {
    double level_time; /* s, for each level of the tree to answer */
    uint32_t id;
    int is_open;                 /* the result is not here yet */
    int is_head;                 /* it is about this rank and those below it */
    struct ctrl_call call;       /* what it is about */
    uint32_t missing;            /* bit j: child j has not answered */
    struct coll__ctrl_roll roll; /* of those that have, and this rank */
    struct coll__task give_up;   /* children that are missing, or the parent */

    /* Passed up, and no result came since; at the root, to be the next. */
    struct ctrl_call raised;
    int is_raised;

    struct ctrl_call last; /* the last round's call and result, and its end */
    struct coll__ctrl_roll result;
    double ended;
};

struct coll__ctrl {
    int rank, size, n_children;
    unsigned generation;     /* of the process that opened it */
    int has_reactor;
    struct ctrl_peer *peers; /* [size] */
    int *known_as; /* [size]: the ranks' numbers in the tree that this is a part
                    * of, while its caller knows no others; else NULL */
    struct coll__ctrl_events events;

    unsigned char tag[COLL__TAG_BYTES]; /* this part's name among its whole's */
    struct coll__ctrl *whole;           /* what it is being made through */
    struct coll__ctrl *parts, *next_part; /* being made through this one */
    int is_dividing;                      /* parts are agreed on, or made */
    struct ctrl_news *news; /* of parts that are not made here yet */

    struct coll__gate gate; /* for the children */
    int has_gate, n_children_here;
    struct coll__link up, down[COLL__MAX_CHILDREN];
    int clone; /* which one this host is of those with equal ids: 0 the first, else 1
                * and the lowest rank here */
    struct ctrl_watch *watches;
    int n_watches;
    struct coll__launcher_watch launcher;

    pthread_cond_t changed; /* anything below */
    int is_open;            /* events may be called */
    int is_leaving;         /* pidfds say nothing any more */
    int is_released;        /* all leave: the end of a link is in order */
    uint32_t n_gathers;     /* entered by this rank */
    struct ctrl_gather gather;
    struct ctrl_question question;
    struct ctrl_round round;
    uint64_t n_questions; /* messages of questions */

    int failed_status; /* 0 while the group lives */
    uint32_t failed_subject;
    char failed_words[COLL__TEXT_MAX];
    char failed_text[COLL__TEXT_MAX];
    int has_notice;          /* failed() is to be called */
    int n_pins;              /* failed() is being called */
    struct coll__task task;  /* to call it */
};

/* All below: lock held. */

/* Begin a frame from this rank. */
struct coll__frame coll__ctrl_frame(const struct coll__ctrl *ctrl,
                                    enum ctrl_frame type, uint32_t to,
                                    uint32_t id, size_t len);

/* Send to every neighbour but one (NULL: to all). */
void coll__ctrl_flood(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                      const void *body, const struct coll__link *except);

/* Return the number by which the caller knows a rank. */
static inline int coll__ctrl_known_as(const struct coll__ctrl *ctrl, int rank)
{
    return ctrl->known_as ? ctrl->known_as[rank] : rank;
}

/* Write "rank 2 (pid 123 on host)". */
void coll__ctrl_name(const struct coll__ctrl *ctrl, int rank,
                     char text[COLL__TEXT_MAX]);

/* Why a group fails: "died" of rank 2, or a whole sentence of NOBODY. */
struct ctrl_reason {
    int status;
    uint32_t subject;
    const char *words;
};

/* The group has failed: remember it, tell the others, wake who waits; and call
 * failed() when is_notice.  The first is for what this rank finds, which a part
 * that is being made tells through its whole too, since some may not have joined
 * it yet; the second for what it hears or what the whole sees for itself: from is
 * the link that brought the news, or NULL. */
void coll__ctrl_fail(struct coll__ctrl *ctrl, const struct ctrl_reason *reason,
                     int is_notice);
void coll__ctrl_hear(struct coll__ctrl *ctrl, const struct ctrl_reason *reason,
                     const struct coll__link *from, int is_notice);
/* Tell a neighbour that connects after the group has failed. */
void coll__ctrl_tell_failure(struct coll__ctrl *ctrl, struct coll__link *link);
void coll__ctrl_died(struct coll__ctrl *ctrl, int rank,
                     const struct coll__link *from);

/* Go through this gathering; 0, or a status, logged. */
int coll__ctrl_gather(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                      const void *in, size_t len, void *out, double timeout);

/* The same in two: enter it; and wait until that time.  COLL_IN_PROGRESS then, or,
 * with a timeout (seconds, to be named in the sentence; < 0: none), its end. */
int coll__ctrl_gather_start(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                            const void *in, size_t len);
int coll__ctrl_gather_end(struct coll__ctrl *ctrl, void *out, double until,
                          double timeout);
int coll__ctrl_got_up(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame, unsigned char *body);
int coll__ctrl_got_down(struct coll__ctrl *ctrl,
                        const struct coll__frame *frame, unsigned char *body);
void coll__ctrl_gather_free(struct coll__ctrl *ctrl);

/* ---- ctrl_ask.c ---------------------------------------------------------- */

/* A call as it travels. */
struct ctrl_call_wire {
    uint32_t subject, rank, peer, is_blocked;
    uint64_t n_started, seq, count;
    uint32_t root;
    uint8_t collective, type, op, series_way; /* 3 bits and 5 */
};

void coll__ctrl_pack_call(const struct ctrl_call *call,
                          struct ctrl_call_wire *wire);

/* Read one that came: 0, or -1 for none that a rank would send. */
int coll__ctrl_take_call(const struct coll__ctrl *ctrl,
                         const struct coll__frame *frame,
                         const unsigned char *body, struct ctrl_call *call);

/* Judge it here; the group has failed when that is VERDICT_NEVER. */
enum coll__verdict coll__ctrl_judge(struct coll__ctrl *ctrl,
                                    const struct ctrl_call *call,
                                    char text[COLL__TEXT_MAX]);

/* Send what is about a question, unless the neighbour has stopped to read. */
void coll__ctrl_pass(struct coll__ctrl *ctrl, struct coll__link *link,
                     const struct coll__frame *frame, const void *body);

int coll__ctrl_got_ask(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                       const unsigned char *body);
int coll__ctrl_got_answer(struct coll__ctrl *ctrl,
                          const struct coll__frame *frame,
                          const unsigned char *body);

/* ---- ctrl_round.c -------------------------------------------------------- */

void coll__ctrl_round_init(struct coll__ctrl *ctrl);

/* Want all to be asked about the call, unless that is under way. */
void coll__ctrl_raise(struct coll__ctrl *ctrl, const struct ctrl_call *call);

/* The result of a round about it that ended after that time, or NULL. */
const struct coll__ctrl_roll *coll__ctrl_result(const struct coll__ctrl *ctrl,
                                                const struct ctrl_call *call,
                                                double since);

int coll__ctrl_got_call(struct coll__ctrl *ctrl, struct coll__link *link,
                        const struct coll__frame *frame,
                        const unsigned char *body);
int coll__ctrl_got_query(struct coll__ctrl *ctrl, struct coll__link *link,
                         const struct coll__frame *frame,
                         const unsigned char *body);
int coll__ctrl_got_roll(struct coll__ctrl *ctrl, struct coll__link *link,
                        const struct coll__frame *frame,
                        const unsigned char *body);
int coll__ctrl_got_result(struct coll__ctrl *ctrl, struct coll__link *link,
                          const struct coll__frame *frame,
                          const unsigned char *body);

/* ---- ctrl_watch.c, ctrl_connect.c ---------------------------------------- */

/* Watch the processes on this host; what cannot be watched is left out. */
void coll__ctrl_watch(struct coll__ctrl *ctrl);
void coll__ctrl_unwatch(struct coll__ctrl *ctrl);

/* Await this rank's children over the wires that there are. */
void coll__ctrl_expect(struct coll__ctrl *ctrl);

/* The links' callbacks. */
void coll__ctrl_link_init(struct coll__ctrl *ctrl, struct coll__link *link,
                          int peer);

/* All below: lock not held. */

/* Make a tree of this rank that is connected to nobody; NULL: no memory. */
struct coll__ctrl *coll__ctrl_new(int rank, int size,
                                  const struct coll__ctrl_events *events);

/* Begin to use the reactor. */
int coll__ctrl_begin(struct coll__ctrl *ctrl);

/* What a rank that cannot join says of itself, by its last error. */
void coll__ctrl_cannot_join(char words[COLL__TEXT_MAX]);

/* The first rank that cannot join tells those that it has reached, and ends
 * ctrl.  A death stays one; what else kept it from joining is its own affair. */
void coll__ctrl_give_up(struct coll__ctrl *ctrl, int status);

/* Await this rank's children from now on; *place is where. */
void coll__ctrl_offer(struct coll__ctrl *ctrl, struct ctrl_place *place);

/* Why a rank has no place: its status, or COLL_OK; and say so. */
int coll__ctrl_place_status(const struct ctrl_place *place);
void coll__ctrl_judge_place(const char *name, const struct ctrl_place *place);

/* Connect the tree, this rank's parent being at *up; NULL: its process is
 * connected. */
int coll__ctrl_connect(struct coll__ctrl *ctrl, const struct ctrl_place *up,
                       double timeout);

/* Without the reactor there is nothing but to tell the others so. */
void coll__ctrl_excuse(struct coll__ctrl *ctrl, struct coll__boot *boot,
                       int status);

/* Tell each other who and where, by the bootstrap, and connect. */
int coll__ctrl_meet(struct coll__ctrl *ctrl, struct coll__boot *boot);

/* A whole has failed: so have the parts that are being made.  Lock held. */
void coll__ctrl_fail_parts(struct coll__ctrl *ctrl,
                           const struct ctrl_reason *reason);

/* This rank has found that a part fails, another rank did (lock held), or the part
 * is made. */
void coll__ctrl_tell_apart(struct coll__ctrl *ctrl,
                           const struct ctrl_reason *reason);
int coll__ctrl_got_apart(struct coll__ctrl *ctrl, struct coll__link *link,
                         const struct coll__frame *frame,
                         const unsigned char *body);
void coll__ctrl_leave_whole(struct coll__ctrl *ctrl);
void coll__ctrl_forget_news(struct coll__ctrl *whole);

#endif
