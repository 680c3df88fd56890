/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_fake.c - a library that misbehaves, as benchmarks/compare sees it;
 * FAKE says how: "wrong" results, "die", "refuse", "hang", "stop" amid the hello. */
#include "benchmarks/rivals/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *mode;

/* Begin to say hello over the connection that peer_loop.c has made, and come no
 * further. */
static void stop_amid_hello(void)
{
    const char *path = getenv(PEER_SOCKET);

    for (int fd = 3; fd < 64; fd++) {
        struct sockaddr_un address = {.sun_family = AF_UNSPEC};
        socklen_t len = sizeof(address);

        if (!path || getpeername(fd, (struct sockaddr *)&address, &len) ||
            address.sun_family != AF_UNIX || strcmp(address.sun_path, path))
            continue;
        if (write(fd, "half", 4) == 4)
            for (;;)
                pause();
    }
    _exit(3);
}

static int init(int *argc, char ***argv, int *rank, int *ranks)
{
    const char *size = getenv("COLL_SIZE");

    (void)argc;
    (void)argv;
    mode = getenv("FAKE") ? getenv("FAKE") : "wrong";
    *rank = atoi(getenv("COLL_RANK") ? getenv("COLL_RANK") : "0");
    *ranks = atoi(size ? size : "1");
    if (!strcmp(mode, "stop"))
        stop_amid_hello();
    return 0;
}

static void fini(void) {}

static const char *version(void) { return "fake 1.0"; }

static const char *error(void) { return "it is out of order"; }

static int run(const float *in, float *out, size_t count, int root)
{
    (void)in;
    (void)out;
    (void)count;
    (void)root;
    if (!strcmp(mode, "die"))
        _exit(3);
    if (!strcmp(mode, "hang"))
        for (;;)
            pause();
    return !strcmp(mode, "refuse");
}

const struct peer_lib peer_lib = {
    .init = init,
    .fini = fini,
    .version = version,
    .error = error,
    .run = {run, run, run, run, NULL, run}, /* no alltoall */
};
