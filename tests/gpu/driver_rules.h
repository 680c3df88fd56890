/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules.h - what a rule of driver_rules.c is made of.
 *
 * A rule is a function that runs in a process of its own, which has opened the driver
 * and called nothing of it.  It makes calls and says of each what it expects; every
 * expectation is reported with what was seen, so that the report of a real driver
 * is what an imitation can be held to.  A rule may start further processes ("parts"),
 * and need not clean up: its processes end with it.
 */
#ifndef TESTS_GPU_DRIVER_RULES_H
#define TESTS_GPU_DRIVER_RULES_H

#include "tests/gpu/gpu.h"

#include <stdatomic.h>
#include <pthread.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

struct rule {
    const char *area, *name;
    const char *cite; /* DA: driver API reference; PG: programming guide */
    const char *text; /* the rule in a sentence */
    void (*run)(void);
};

/* What another process of a rule does; talk is its socket to the rule. */
struct part {
    const char *name;
    void (*run)(int talk);
};

struct rule_file {
    const struct rule *rules;
    size_t n_rules;
    const struct part *parts;
    size_t n_parts;
};
extern const struct rule_file rules_init, rules_context, rules_pointer,
    rules_stream, rules_queue, rules_copy, rules_memop, rules_ipc,
    rules_ipc_more, rules_vmm, rules_host, rules_capture, rules_unsafe,
    rules_graph, rules_kernel, rules_fault, rules_pool;

extern int rules_allow_managed; /* --managed */
extern int rules_is_part;       /* this process is a part of a rule */

/* Expectations.  WANT(INVALID_VALUE, cu.MemAlloc(&at, 0)) and the like go on after a
 * difference; GOOD is for what must succeed; MUST ends the rule when it does not. */
#define WANT(code, call) want_code(#call, CUDA_ERROR_##code, (call))
#define GOOD(call) want_code(#call, CUDA_SUCCESS, (call))
#define MUST(call) must(#call, (call))
/* an error, which one being left open by the documents */
#define REFUSED(call) want_refused(#call, (call))
void want_code(const char *call, CUresult want, CUresult got);
void want_refused(const char *call, CUresult got);
void must(const char *call, CUresult got);
void want_true(const char *what, int holds);
void want_number(const char *what, long long want, long long got);
void want_text(const char *what, const char *want, const char *got);

/* Something seen that no rule prescribes. */
void seen(const char *what, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The code that a call gave, which no rule prescribes; and how a capture ends. */
void seen_code(const char *what, CUresult got);
void seen_end(const char *what, CUstream capturing);

/* The rule cannot be tried here; ends the process. */
_Noreturn void cannot(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* cuInit, the primary context, and the words below; ends the rule on failure. */
CUcontext start(void);

/* A stream that neither waits for the legacy stream nor is waited for; an event
 * without times. */
CUstream new_stream(void);
CUevent new_event(void);

/* 32-bit words of pinned host memory, zero, 64 bytes from others, and where the device
 * sees them. */
struct words {
    volatile uint32_t *host;
    CUdeviceptr dev;
};
struct words new_words(size_t n);
CUdeviceptr new_memory(size_t len);

/* A wait at which a stream stands until it is opened. */
struct gate {
    struct words word;
};
struct gate gate_shut(CUstream s);
void gate_open(struct gate *gate);

/* Has the word become value within ms? */
int becomes(volatile uint32_t *word, uint32_t value, int ms);
void rest(int ms);

/* A stream is expected to set the word to 1, soon; or not to, so far. */
void goes_on(const char *what, volatile uint32_t *word);
void stands(const char *what, volatile uint32_t *word);

/* Shut a gate in one stream; behind it another one (or the same) is to set
 * words.host[0], and beside it a third words.host[1]. */
struct held {
    struct words words;
    struct gate gate;
};
struct held hold(CUstream gated, CUstream behind, CUstream beside);

/* A call in a thread of its own, with the context of the caller. */
struct later {
    CUresult (*call)(void *arg);
    void *arg;
    CUcontext ctx;
    CUresult rc;
    atomic_int done;
    pthread_t thread;
};
void later_start(struct later *l, CUresult (*call)(void *), void *arg);
int later_done(struct later *l, int ms);
CUresult later_join(struct later *l);

/* "returns" or "blocks": does the call come back within 600 ms?  When it does not, the
 * gate is opened and the call waited for. */
const char *returns_or_blocks(CUresult (*call)(void *), void *arg,
                              struct gate *gate);

/* Another process: how it is started. */
struct part_how {
    const char *setenv, *value;
    int is_new_pid_namespace, is_nobody;
};
struct part_run {
    int talk, pid;
};
struct part_run part_start(const char *name, const struct part_how *how);
int part_end(struct part_run *run); /* its wait status */

/* The talk of parts; ends the process when the other end has gone. */
void tell(int talk, const void *at, size_t len);
void hear(int talk, void *at, size_t len);
void tell_word(int talk, int word);
int hear_word(int talk);

#endif
