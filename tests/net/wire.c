/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - a cable between two interfaces that takes its time and loses packets, for
 * kernels without netem.
 *
 *   wire INTERFACE INTERFACE MICROSECONDS PERCENT [SEED]
 *
 * What comes at one leaves by the other, so much later; PERCENT of the packets do not.
 * They are as the kernel has them: checksums and segments may be still to make, which
 * the header in front of each says (PACKET_VNET_HDR).  A cable holds so many packets;
 * more are lost.  On SIGTERM it says how many went and how many were lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HELD 2048 /* packets in one direction */
#define LONGEST (70 << 10)

struct packet {
    double due;
    size_t len;
    unsigned char *bytes;
};

struct way {
    int from, to; /* sockets */
    struct packet packets[HELD];
    unsigned first, end; /* of them, modulo HELD */
};

static struct way ways[2];
static unsigned long n_went, n_lost;
static volatile sig_atomic_t is_over;

static void stop(int signal)
{
    (void)signal;
    is_over = 1;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int open_end(const char *name)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = (int)if_nametoindex(name)};
    struct packet_mreq all = {.mr_ifindex = at.sll_ifindex,
                              .mr_type = PACKET_MR_PROMISC};
    int on = 1, room = 16 << 20, fd = socket(AF_PACKET, SOCK_RAW, 0);

    if (fd < 0 || !at.sll_ifindex ||
        setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) ||
        bind(fd, (struct sockaddr *)&at, sizeof(at))) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    return fd;
}

/* Take in what has come. */
static void take(struct way *way, double delay, double loss)
{
    static unsigned char bytes[LONGEST];
    ssize_t n;

    while ((n = recv(way->from, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        struct packet *packet = &way->packets[way->end % HELD];

        if (drand48() < loss || way->end - way->first == HELD ||
            !(packet->bytes = malloc((size_t)n))) {
            n_lost++;
            continue;
        }
        memcpy(packet->bytes, bytes, (size_t)n);
        packet->len = (size_t)n;
        packet->due = now() + delay;
        way->end++;
    }
}

/* Let go what is due; the seconds until the next is, at most `most`. */
static double give(struct way *way, double most)
{
    double wait = most;

    while (way->first != way->end) {
        struct packet *packet = &way->packets[way->first % HELD];

        wait = packet->due - now();
        if (wait > 0)
            break;
        if (send(way->to, packet->bytes, packet->len, 0) < 0)
            n_lost++;
        else
            n_went++;
        free(packet->bytes);
        way->first++;
        wait = most;
    }
    return wait < most ? wait : most;
}

static void wait_for(double seconds)
{
    struct pollfd fds[2] = {{ways[0].from, POLLIN, 0},
                            {ways[1].from, POLLIN, 0}};
    struct timespec t = {.tv_nsec = (long)(seconds * 1e9)};

    ppoll(fds, 2, &t, NULL);
}

int main(int argc, char **argv)
{
    double delay, loss;

    if (argc < 5) {
        fprintf(stderr, "wire: see the head of wire.c\n");
        return 2;
    }
    delay = atof(argv[3]) * 1e-6;
    loss = atof(argv[4]) / 100;
    srand48(argc > 5 ? atol(argv[5]) : 1);
    signal(SIGTERM, stop);
    ways[0].from = ways[1].to = open_end(argv[1]);
    ways[1].from = ways[0].to = open_end(argv[2]);
    printf("up\n");
    fflush(stdout);
    while (!is_over) {
        double wait = 0.1;

        for (int i = 0; i < 2; i++) {
            take(&ways[i], delay, loss);
            wait = give(&ways[i], wait);
        }
        wait_for(wait);
    }
    printf("%lu went, %lu lost\n", n_went, n_lost);
    return EXIT_SUCCESS;
}
