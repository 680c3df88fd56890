/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_tree.h - all processes of a job, whatever process started them. */
#ifndef COLL_TOOLS_COLLRUN_TREE_H
#define COLL_TOOLS_COLLRUN_TREE_H

#include <sys/types.h>

/* The variable that marks the processes of a job, and the bytes of its value. */
#define TREE_VARIABLE "COLLRUN_JOB"
#define TREE_MARK 33

/* Draw a mark that no other job has. */
void tree_draw(char mark[TREE_MARK]);

/* Adopt the processes that the caller's descendants leave behind: from now on, its
 * descendants that have no mark at all belong to the job.  Not if it has children
 * already, which are not the job's.  The caller reaps what it adopts. */
void tree_adopt(void);

/* This child does not belong to the job, nor does what it starts, even if that clears its
 * environment.  It is to be reaped by tree_reap(). */
void tree_spare(pid_t pid);

/* Reap a child as waitpid() does. */
pid_t tree_reap(pid_t pid, int *how, int options);

/* In a new process that does not belong to the job (see tree_spare()): it gets a session of
 * its own, without a terminal, and the usual signals. */
void tree_leave(void);

/* Send the signal to each process of the job, except the caller.
 *
 * Result:    the number of such processes.
 * Cost:      reads the environment of each process of the user.
 */
int tree_signal(const char *mark, int signal);

/* Find which of n numbers, from `first` on, the variable has in the marked processes.
 *
 * Shapes:    found[n]: 1 for each number that some process has; others are unchanged.
 * Cost:      as tree_signal().
 */
void tree_find(const char *mark, const char *name, int first, int n,
               char *found);

/* Kill the marked processes in which the variable has this value, also those that are
 * started meanwhile. */
void tree_kill_where(const char *mark, const char *name, int value);

/* Kill all processes of the job, also those that are started meanwhile. */
void tree_kill(const char *mark);

#endif
