/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_fixture.c - find, load and vary the machines in tests/topo. */
#include "tests/sim/fabric_fixture.h"
#include "tests/support/files.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const fixtures[N_FIXTURES] = {
    "switch.topo", "one_socket.topo",   "numa4.topo",      "pcie4.topo",
    "dgx.topo",    "cube_mesh.topo",    "mixed.topo",      "nic_down.topo",
    "cables.topo", "fattree.topo",      "dragonfly.topo",  "torus.topo",
    "rails.topo",  "gpu_pairs.topo",    "two_sockets.xml", "four_numa.xml",
    "vga192.xml",  "gpus_nvswitch.xml", "gpus_pcie.xml"};

static const char *path_of(const char *name)
{
    return fixture_file("topo", name);
}

struct coll__fabric *load(const char *name)
{
    struct coll__fabric *fabric = NULL;

    ck_assert_msg(!coll__fabric_load(path_of(name), &fabric), "%s",
                  coll_last_error());
    return fabric;
}

size_t read_file(const char *name, char *text)
{
    FILE *file = fopen(path_of(name), "rb");
    size_t len;

    ck_assert_msg(file != NULL, "no file %s", name);
    len = fread(text, 1, MAX_TEXT - 1, file);
    fclose(file);
    text[len] = '\0';
    return len;
}

unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

struct coll__fabric *load_text(const char *text, size_t len)
{
    char path[] = "test_fabric_XXXXXX";
    struct coll__fabric *fabric = NULL;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert(write(fd, text, len) == (ssize_t)len);
    close(fd);
    coll__fabric_load(path, &fabric);
    unlink(path);
    return fabric;
}

void check_route(const struct coll__fabric *fabric, int from, int to)
{
    int links[COLL__ROUTE_MAX], back[COLL__ROUTE_MAX];
    int n = coll__fabric_route(fabric, from, to, links);
    int other = (from + 1) % coll__fabric_n_seats(fabric);

    if (from == to) {
        ck_assert_int_eq(n, 0);
        return;
    }
    ck_assert_int_ge(n, 2);
    ck_assert_int_le(n, COLL__ROUTE_MAX);
    for (int i = 0; i < n; i++) {
        struct coll__fabric_link link;

        ck_assert(links[i] >= 0 && links[i] < coll__fabric_n_links(fabric));
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(links[i], links[j]);
        link = coll__fabric_link(fabric, links[i]);
        ck_assert(link.latency >= 0 && link.beta > 0 && link.share > 0);
        ck_assert(link.share <= link.beta);
    }
    /* the first is the sender's own, whoever the receiver is */
    if (other != from && other != to) {
        coll__fabric_route(fabric, from, other, back);
        ck_assert_int_eq(back[0], links[0]);
        coll__fabric_route(fabric, other, to, back);
        ck_assert_int_ne(back[0], links[0]);
    }
}
