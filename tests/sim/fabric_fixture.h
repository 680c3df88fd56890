/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_fixture.h - the machines in tests/topo, for the tests that use them. */
#ifndef COLL_TESTS_FABRIC_FIXTURE_H
#define COLL_TESTS_FABRIC_FIXTURE_H

#include "tools/sim/fabric.h"

#define N_FIXTURES 19
#define N_TEXT_FIXTURES (N_FIXTURES - 5) /* the last ones are XML */
#define MAX_TEXT (1 << 18)

extern const char *const fixtures[N_FIXTURES];

/* Load a fixture, which must be right. */
struct coll__fabric *load(const char *name);

/* Load a file of this content; NULL when it is refused. */
struct coll__fabric *load_text(const char *text, size_t len);

/* Read a fixture into text[MAX_TEXT]; its length. */
size_t read_file(const char *name, char *text);

/* A small generator of our own: the same numbers everywhere. */
unsigned next_random(unsigned *state);

/* Expect a route that hangs together. */
void check_route(const struct coll__fabric *fabric, int from, int to);

#endif
