/* SPDX-License-Identifier: BSD-3-Clause */
/* ctrl_int.h - the control tree's internals, shared by ctrl*.c.
 *
 * All members of struct coll__ctrl after `events` are under the reactor's lock.
 */
#ifndef COLL_LIB_CTRL_CTRL_INT_H
#define COLL_LIB_CTRL_CTRL_INT_H

#include "lib/boot/launcher.h"
#include "lib/ctrl/ctrl.h"
#include "lib/net/link.h"
#include "lib/net/listener.h"
#include "lib/net/tree.h"

struct ctrl_peer;

enum ctrl_frame {
    CTRL_UP =
        1, /* a subtree's blocks; id = number of the gathering, to = purpose */
    CTRL_DOWN,   /* the blocks of all ranks, to every rank */
    CTRL_FAILED, /* id = -status, to = the rank that body speaks of, or
                  * NOBODY, body = the reason; to every rank */
    CTRL_ASK,    /* a question from a rank to a rank; id = its number */
    CTRL_ANSWER, /* the answer to CTRL_ASK */
    CTRL_CALL,   /* a rank wants all ranks asked about its call; to the root */
    CTRL_QUERY,  /* the root's question to all; id = the round's number */
    CTRL_ROLL,   /* a subtree's answers */
    CTRL_RESULT, /* the answers of all ranks, to every rank */
    CTRL_APART,  /* a part could not be made; to every rank of the whole */
    CTRL_AGREE /* a step of an agreement; to a neighbour in the sender's view */
};

#define NOBODY UINT32_MAX

enum ctrl_purpose { PURPOSE_GATHER, PURPOSE_LEAVE };

/* One rank's process on this host is watched for one tree; in the process's list. */
struct ctrl_process;
struct ctrl_watch {
    struct coll__ctrl *ctrl;
    int rank;
    struct ctrl_process *process; /* NULL in a forked child */
    struct ctrl_watch *next, **at;
};

/* The gathering (allgather) that this rank is in, or that its children have begun. */
struct ctrl_gather {
    enum ctrl_purpose purpose;
    int is_entered, is_sent, is_done;
    size_t len;          /* of each block */
    unsigned char *mine; /* [span * len]: the subtree's blocks; at the root, of all */
    unsigned char *all;  /* [size * len] when done; may point to mine */
    struct {
        int is_here;
        enum ctrl_purpose purpose;
        uint64_t len;
        unsigned char *body;
    } up[COLL__MAX_CHILDREN]; /* per child */
};

/* The subject of a question: an operation, about which the communicator is asked, or a
 * gathering, whose number is of.sig.seq. */
enum ctrl_subject { SUBJECT_OPERATION, SUBJECT_GATHERING };

struct ctrl_call {
    enum ctrl_subject subject;
    struct coll__ctrl_call of;
};

/* This rank's last question to another rank. */
struct ctrl_question {
    uint32_t id;
    struct coll__ctrl_call call;
    double asked, answered; /* times; answered is 0 until then */
    int is_heard;           /* the asking thread has read it */
    struct coll__ctrl_roll roll;
};

/* A round asks all ranks about one call; one round at a time. */
#define CTRL_RESULTS 8

/* The result of a round. */
struct ctrl_result {
    struct ctrl_call call;
    struct coll__ctrl_roll roll;
    double ended; /* 0: there is none */
};

struct ctrl_round {
    double level_time; /* s, in which each level of the tree must answer */
    uint32_t id;
    int is_open;                 /* the result is not here yet */
    int is_head;                 /* this rank leads it: root, or its parent is silent */
    struct ctrl_call call;       /* the round's call */
    uint32_t missing;            /* bit j: child j has not answered */
    struct coll__ctrl_roll roll; /* the answers so far, with this rank */
    struct coll__task give_up;   /* on the missing children, or on the parent */

    /* The call sent up, until a result comes; at the root, the next round's call. */
    struct ctrl_call raised;
    int is_raised;

    /* The last results about different calls: several ranks may ask at a time, and each
     * reads its result later. */
    struct ctrl_result results[CTRL_RESULTS];
    double ended; /* the last round */
};

/* A part of another group's ranks, and the parts that are being made of this group. */
struct ctrl_parts {
    unsigned char tag[COLL__TAG_BYTES]; /* tells this part from others */
    struct coll__ctrl *whole;           /* while this part is being made */
    int is_rest;                        /* of the whole's ranks */
    struct coll__ctrl *first,
        *next;              /* being made through this one; beside this one */
    int is_dividing;        /* between divide_begin and divide_end */
    struct ctrl_news *news; /* of parts that this rank has not made yet */
};

/* The links to this rank's parent and to its children. */
struct ctrl_tree {
    int n_children, n_children_here;
    struct coll__gate gate; /* for the children */
    int has_gate;
    struct coll__link up, down[COLL__MAX_CHILDREN];
};

/* The other processes of this host, and the launcher. */
struct ctrl_watching {
    int clone; /* tells clones of this host apart: 0 on the first one, else 1 and the
                * lowest rank here */
    struct ctrl_watch *watches;
    int n_watches;
    struct coll__launcher_watch launcher;
};

/* Why the group has failed, and the call of failed() that says so. */
struct ctrl_failure {
    int status; /* 0 while the group lives */
    uint32_t subject;
    char words[COLL__TEXT_MAX];
    char text[COLL__TEXT_MAX];
    int has_notice;         /* failed() must be called */
    int n_pins;             /* failed() is being called */
    struct coll__task task; /* to call it */
};

struct coll__ctrl {
    int rank, size;
    unsigned generation; /* of the process that opened it */
    int has_reactor;
    struct ctrl_peer *peers; /* [size] */
    int *
        known_as; /* [size]: the ranks' numbers in the whole while this part is being
                    * made, for errors; else NULL */
    struct coll__ctrl_events events;
    struct ctrl_parts parts;
    struct ctrl_tree tree;
    struct ctrl_watching watching;

    pthread_cond_t changed; /* any member below has changed */
    int is_open;            /* events may be called */
    int is_leaving;         /* pidfds say nothing any more */
    int is_released;        /* all ranks leave: from now on links end in order */
    uint32_t n_gathers;     /* entered by this rank */
    struct ctrl_gather gather;
    struct ctrl_question question;
    struct ctrl_round round;
    uint64_t n_questions; /* messages sent for questions */
    struct ctrl_failure failure;
    struct ctrl_agreement *agreement; /* ctrl_agree.c */
};

/* All below: lock held. */

/* Begin a frame from this rank. */
struct coll__frame coll__ctrl_frame(const struct coll__ctrl *ctrl,
                                    enum ctrl_frame type, uint32_t to,
                                    uint32_t id, size_t len);

/* Send to every neighbour except one (NULL: to all). */
void coll__ctrl_flood(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                      const void *body, const struct coll__link *except);

/* Return the rank's number for errors: in the whole, while a part is being made. */
static inline int coll__ctrl_known_as(const struct coll__ctrl *ctrl, int rank)
{
    return ctrl->known_as ? ctrl->known_as[rank] : rank;
}

/* Write "rank 2 (pid 123 on host)". */
void coll__ctrl_name(const struct coll__ctrl *ctrl, int rank,
                     char text[COLL__TEXT_MAX]);

/* Why a group fails: `subject` is rank 2 and the words are "died"; or subject is NOBODY
 * and the words are a whole sentence. */
struct ctrl_reason {
    int status;
    uint32_t subject;
    const char *words;
};

/* Mark the group as failed, tell the other ranks, wake the waiting threads, and call
 * failed() if is_notice.
 *
 * coll__ctrl_fail() is for a failure that this rank finds.  A part that is being made
 * also tells it through the whole, since some of its ranks may not be connected yet.
 * coll__ctrl_hear() is for a failure that other ranks report, or that the whole sees
 * itself; from: the link that brought it, or NULL. */
void coll__ctrl_fail(struct coll__ctrl *ctrl, const struct ctrl_reason *reason,
                     int is_notice);
void coll__ctrl_hear(struct coll__ctrl *ctrl, const struct ctrl_reason *reason,
                     const struct coll__link *from, int is_notice);
/* Tell the failure to a neighbour that connects after the group has failed. */
void coll__ctrl_tell_failure(struct coll__ctrl *ctrl, struct coll__link *link);
void coll__ctrl_died(struct coll__ctrl *ctrl, int rank,
                     const struct coll__link *from);

/* Take part in the next gathering, with PURPOSE_GATHER; 0, or a status, logged. */
int coll__ctrl_gather(struct coll__ctrl *ctrl, const void *in, size_t len,
                      void *out, double timeout);

/* As coll__ctrl_gather(), in two calls, for any purpose: enter the gathering, and wait for
 * its end until coll__now() reaches `until`.  If it has not ended then: with timeout < 0
 * the result is COLL_IN_PROGRESS; else the group fails, and the error names the timeout
 * (seconds). */
int coll__ctrl_gather_start(struct coll__ctrl *ctrl, enum ctrl_purpose purpose,
                            const void *in, size_t len);
int coll__ctrl_gather_end(struct coll__ctrl *ctrl, void *out, double until,
                          double timeout);
int coll__ctrl_got_up(struct coll__ctrl *ctrl, struct coll__link *link,
                      const struct coll__frame *frame, unsigned char *body);
int coll__ctrl_got_down(struct coll__ctrl *ctrl,
                        const struct coll__frame *frame, unsigned char *body);
void coll__ctrl_gather_free(struct coll__ctrl *ctrl);

/* ---- ctrl_agree.c -------------------------------------------------------- */

/* Make the state of the living ranks' agreements; NULL: no memory, not logged. */
struct ctrl_agreement *coll__ctrl_agreement_new(struct coll__ctrl *ctrl);
void coll__ctrl_agreement_free(struct ctrl_agreement *agreement);

/* A rank has died, or has left.  Also after the group has failed. */
void coll__ctrl_note_death(struct coll__ctrl *ctrl, int rank);

/* Send to the neighbours that this rank has got since others died, but for one. */
void coll__ctrl_flood_mended(struct coll__ctrl *ctrl,
                             const struct coll__frame *frame, const void *body,
                             const struct coll__link *except);

int coll__ctrl_got_agree(struct coll__ctrl *ctrl,
                         const struct coll__frame *frame, unsigned char *body);

/* ---- ctrl_ask.c ---------------------------------------------------------- */

/* A call as it travels. */
struct ctrl_call_wire {
    uint32_t subject, rank, peer, is_blocked;
    uint64_t n_started, seq, count;
    uint32_t root;
    uint8_t collective, type, op, series_algo_id; /* 3 bits and 5 */
};

void coll__ctrl_pack_call(const struct ctrl_call *call,
                          struct ctrl_call_wire *wire);

/* Read a call from the network: 0, or -1 if no rank would send it. */
int coll__ctrl_take_call(const struct coll__ctrl *ctrl,
                         const struct coll__frame *frame,
                         const unsigned char *body, struct ctrl_call *call);

/* Compare another rank's call with this rank's; VERDICT_NEVER has failed the group. */
enum coll__verdict coll__ctrl_judge(struct coll__ctrl *ctrl,
                                    const struct ctrl_call *call,
                                    char text[COLL__TEXT_MAX]);

/* Send a frame of a question; drop it if the neighbour has stopped reading. */
void coll__ctrl_pass(struct coll__ctrl *ctrl, struct coll__link *link,
                     const struct coll__frame *frame, const void *body);

int coll__ctrl_got_ask(struct coll__ctrl *ctrl, const struct coll__frame *frame,
                       const unsigned char *body);
int coll__ctrl_got_answer(struct coll__ctrl *ctrl,
                          const struct coll__frame *frame,
                          const unsigned char *body);

/* ---- ctrl_round.c -------------------------------------------------------- */

void coll__ctrl_round_init(struct coll__ctrl *ctrl);

/* Request a round about the call, unless one is under way. */
void coll__ctrl_raise(struct coll__ctrl *ctrl, const struct ctrl_call *call);

/* Return the last round's result if it is about the call and came after `since`; or
 * NULL. */
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

/* Watch the other processes of this host, as far as possible. */
void coll__ctrl_watch(struct coll__ctrl *ctrl);
void coll__ctrl_unwatch(struct coll__ctrl *ctrl);

/* Set up a link and its callbacks. */
void coll__ctrl_link_init(struct coll__ctrl *ctrl, struct coll__link *link,
                          int peer);

/* All below: lock not held. */

/* Allocate a tree that is not connected yet; NULL: no memory. */
struct coll__ctrl *coll__ctrl_new(int rank, int size,
                                  const struct coll__ctrl_events *events);

/* Begin to use the reactor. */
int coll__ctrl_begin(struct coll__ctrl *ctrl);

/* Write why this rank cannot join, from its last error. */
void coll__ctrl_cannot_join(char words[COLL__TEXT_MAX]);

/* End ctrl because this rank cannot join, and tell the ranks that are connected to it.
 * They get COLL_ERR_PEER if a rank's death is the reason, else COLL_ERR_BOOTSTRAP. */
void coll__ctrl_give_up(struct coll__ctrl *ctrl, int status);

/* Connect the tree: at the parent's gate, or, for a part, at its gate of the whole. */
int coll__ctrl_connect(struct coll__ctrl *ctrl, const struct coll__ctrl *whole,
                       double timeout);

/* This rank has no reactor: tell the other ranks so by the bootstrap. */
void coll__ctrl_excuse(struct coll__ctrl *ctrl, struct coll__boot *boot,
                       int status);

/* Exchange who and where each rank is, by the bootstrap, and connect. */
int coll__ctrl_meet(struct coll__ctrl *ctrl, struct coll__boot *boot);

/* The whole has failed: fail the parts that are being made from it.  Lock held. */
void coll__ctrl_fail_parts(struct coll__ctrl *ctrl,
                           const struct ctrl_reason *reason);

/* A part that is being made reports its failure through the whole: tell sends this rank's
 * report, got takes another rank's (both: lock held).  leave: the part is made. */
void coll__ctrl_tell_apart(struct coll__ctrl *ctrl,
                           const struct ctrl_reason *reason);
int coll__ctrl_got_apart(struct coll__ctrl *ctrl, struct coll__link *link,
                         const struct coll__frame *frame,
                         const unsigned char *body);
void coll__ctrl_leave_whole(struct coll__ctrl *ctrl);
void coll__ctrl_forget_news(struct coll__ctrl *whole);

#endif
