/* SPDX-License-Identifier: BSD-3-Clause */
/* enemy.c - who belongs to no job, for tests between hosts.  Knows nothing of libcoll
 * but what can be seen on the wire.
 *
 *   enemy listen INTERFACE FILE     write there what each connection begins with, when
 *                                   that is a hello and a proof, until SIGTERM
 *   enemy attack SECONDS SILENT FILE ADDRESS:PORT...
 *                                   hold SILENT connections that say nothing, and say
 *                                   this and that to each port, again and again
 *
 * An attack says at its end what it has sent, and how many connections seemed to be
 * taken: those that were not ended, or were told more than one challenge.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HELLO 80 /* bytes */
#define CHALLENGE 68
#define PROOF 32
#define RECORDS 256
#define ANSWER_MS 12000 /* a listener's patience is 10 s */

struct record {
    unsigned char hello[HELLO], proof[PROOF];
};

static struct record records[RECORDS];
static int n_records;
static volatile sig_atomic_t is_over;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fails(const char *what)
{
    perror(what);
    return EXIT_FAILURE;
}

/* ---- listening on the wire ----------------------------------------------- */

static struct half { /* a hello whose proof has not come yet */
    uint16_t port;
    unsigned char hello[HELLO];
} halves[RECORDS];
static int n_halves;

static void hear(uint16_t port, const unsigned char *bytes, size_t len)
{
    if (len == HELLO && !memcmp(bytes, "COLLv", 5)) {
        struct half *half = &halves[n_halves++ % RECORDS];

        half->port = port;
        memcpy(half->hello, bytes, HELLO);
    }
    for (int i = 0; len == PROOF && i < RECORDS && n_records < RECORDS; i++)
        if (halves[i].port == port) {
            memcpy(records[n_records].hello, halves[i].hello, HELLO);
            memcpy(records[n_records++].proof, bytes, PROOF);
            halves[i].port = 0;
        }
}

/* Of an Ethernet frame with IPv4 and TCP what that carries. */
static void dissect(const unsigned char *frame, size_t n)
{
    size_t ip = 14, tcp = ip + (frame[ip] & 15u) * 4u, body, end;

    if (n < 54 || frame[12] != 8 || frame[13] != 0 || frame[ip + 9] != 6 ||
        tcp + 20 > n)
        return;
    body = tcp + (frame[tcp + 12] >> 4) * 4u;
    end = ip + (size_t)(frame[ip + 2] << 8 | frame[ip + 3]);
    if (body <= end && end <= n)
        hear((uint16_t)(frame[tcp] << 8 | frame[tcp + 1]), frame + body,
             end - body);
}

static void stop(int signal)
{
    (void)signal;
    is_over = 1;
}

static int listen_to(const char *interface, const char *path)
{
    static unsigned char frame[1 << 16];
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = (int)if_nametoindex(interface)};
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    FILE *file;

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
        return fails(interface);
    signal(SIGTERM, stop);
    puts("listening");
    fflush(stdout);
    while (!is_over) {
        struct pollfd pfd = {fd, POLLIN, 0};
        ssize_t n =
            poll(&pfd, 1, 100) > 0 ? recv(fd, frame, sizeof(frame), 0) : 0;

        if (n > 0)
            dissect(frame, (size_t)n);
    }
    file = fopen(path, "w");
    if (!file ||
        fwrite(records, sizeof(*records), (size_t)n_records, file) !=
            (size_t)n_records ||
        fclose(file))
        return fails(path);
    printf("recorded %d\n", n_records);
    return EXIT_SUCCESS;
}

/* ---- attacks --------------------------------------------------------------- */

enum kind { GARBAGE, HALF, HUGE, REPLAY, N_KINDS };

static const char *const names[] = {"garbage", "half a hello", "4 GiB",
                                    "replays"};
static unsigned n_sent[N_KINDS], n_refused, n_silent, n_taken;

static int connect_to(const struct sockaddr_in *at)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 2};

    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (fd >= 0 && !connect(fd, (const struct sockaddr *)at, sizeof(*at)))
        return fd;
    n_refused++;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Read until the other end closes it: how many bytes; -1: it does not. */
static int hear_out(int fd)
{
    double end = now() + ANSWER_MS / 1e3;
    struct pollfd pfd = {fd, POLLIN, 0};
    char bytes[512];
    int total = 0;

    while (now() < end && !is_over) {
        ssize_t n =
            poll(&pfd, 1, 100) > 0 ? recv(fd, bytes, sizeof(bytes), 0) : -2;

        if (n == -2)
            continue;
        if (n <= 0)
            return total;
        total += (int)n;
    }
    return is_over ? total : -1;
}

static void say(int fd, const void *bytes, size_t len)
{
    if (send(fd, bytes, len, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        perror("send");
}

/* A challenge, if there is one, is answered by what another one was. */
static void replay(int fd, const struct record *record)
{
    char challenge[CHALLENGE];
    struct timeval limit = {.tv_sec = 12};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    say(fd, record->hello, HELLO);
    if (recv(fd, challenge, CHALLENGE, MSG_WAITALL) == CHALLENGE)
        say(fd, record->proof, PROOF);
    if (hear_out(fd)) /* one word more, or it stays */
        n_taken++;
}

static void try(const struct sockaddr_in *at, enum kind kind, unsigned i)
{
    unsigned char bytes[HELLO * 4];
    int fd = connect_to(at);

    if (fd < 0)
        return;
    n_sent[kind]++;
    for (size_t b = 0; b < sizeof(bytes); b++)
        bytes[b] = kind == HUGE ? 0xff : (unsigned char)(rand() >> 7);
    memcpy(bytes, "COLLv001", kind == GARBAGE ? 0 : 8);
    if (kind == REPLAY && n_records)
        replay(fd, &records[i % (unsigned)n_records]);
    else if (kind != REPLAY)
        say(fd, bytes, kind == HALF ? 8 + i % (HELLO - 8) : sizeof(bytes));
    /* half a hello is left alone; what is whole is judged, and ended */
    if ((kind == GARBAGE || kind == HUGE) && hear_out(fd) > CHALLENGE)
        n_taken++;
    close(fd);
}

static struct sockaddr_in place_of(const char *text)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char ip[64] = "";
    unsigned port = 0;

    if (sscanf(text, "%63[^:]:%u", ip, &port) != 2 ||
        inet_pton(AF_INET, ip, &at.sin_addr) != 1) {
        fprintf(stderr, "%s: not ADDRESS:PORT\n", text);
        exit(EXIT_FAILURE);
    }
    at.sin_port = htons((uint16_t)port);
    return at;
}

static void read_records(const char *path)
{
    FILE *file = fopen(path, "r");

    if (file) {
        n_records = (int)fread(records, sizeof(*records), RECORDS, file);
        fclose(file);
    }
}

static int attack(double seconds, int n_hold, char **places, int n_places)
{
    struct rlimit limit;
    double end;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < n_hold; i++) {
        struct sockaddr_in at = place_of(places[i % n_places]);

        n_silent += connect_to(&at) >= 0; /* and is never closed */
    }
    printf("holding %u\n", n_silent);
    fflush(stdout);
    end = now() + seconds;
    for (unsigned i = 0; now() < end && !is_over; i++) {
        struct sockaddr_in at =
            place_of(places[i / N_KINDS % (unsigned)n_places]);

        try(&at, (enum kind)(i % N_KINDS), i / N_KINDS / (unsigned)n_places);
    }
    printf("sent");
    for (int k = 0; k < N_KINDS; k++)
        printf(" %u %s,", n_sent[k], names[k]);
    printf(" held %u silent, %u refused: %u taken\n", n_silent, n_refused,
           n_taken);
    return n_taken ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "listen"))
        return listen_to(argv[2], argv[3]);
    if (argc < 6 || strcmp(argv[1], "attack") != 0) {
        fprintf(stderr, "enemy: see the head of enemy.c\n");
        return 2;
    }
    signal(SIGTERM, stop);
    read_records(argv[4]);
    return attack(atof(argv[2]), atoi(argv[3]), argv + 5, argc - 5);
}
