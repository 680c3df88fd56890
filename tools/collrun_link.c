/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_link.c - sealed messages between the collruns of two hosts. */
#include "tools/collrun_link.h"
#include "tools/collrun.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(LINK_KEY == crypto_secretbox_KEYBYTES &&
                   LINK_SEALED == LINK_WORD + crypto_secretbox_MACBYTES,
               "the sizes are libsodium's");

/* ---- keys ------------------------------------------------------------------ */

/* Read the first line of a file that only the user may read. */
static int read_secret(const char *path, char *text, int len)
{
    FILE *file = fopen(path, "re");
    const char *why = NULL;
    struct stat st;

    if (!file || fstat(fileno(file), &st))
        why = strerror(errno);
    else if (st.st_mode & 077)
        why = "others may read it; chmod 600 it";
    else if (!fgets(text, len, file) || !text[strcspn(text, "\n")])
        why = strcspn(text, "\n") ? NULL : "its first line is empty";
    if (file)
        fclose(file);
    if (!why)
        text[strcspn(text, "\n")] = '\0';
    else
        complain("COLL_JOB_SECRET_FILE=%s: %s", path, why);
    return why ? -1 : 0;
}

int link_key(const char *run_id, unsigned char key[LINK_KEY])
{
    const char *secret = getenv("COLL_JOB_SECRET"),
               *path = getenv("COLL_JOB_SECRET_FILE");
    char text[1024] = "", all[2048];
    int is_secret;

    if (sodium_init() < 0) {
        complain("libsodium does not work here");
        return -1;
    }
    if (secret && *secret)
        snprintf(text, sizeof(text), "%s", secret);
    else if (path && *path && read_secret(path, text, sizeof(text)))
        return -1;
    snprintf(all, sizeof(all), "collrun %.900s\n%s", run_id, text);
    crypto_generichash(key, LINK_KEY, (unsigned char *)all, strlen(all), NULL,
                       0);
    sodium_memzero(all, sizeof(all));
    is_secret = *text != '\0';
    sodium_memzero(text, sizeof(text));
    return is_secret;
}

void link_draw(unsigned char nonce[LINK_NONCE])
{
    randombytes_buf(nonce, LINK_NONCE);
}

/* The link's key is made of both nonces, the server's first. */
void link_init(struct link *link, int is_server,
               const unsigned char key[LINK_KEY],
               const unsigned char mine[LINK_NONCE],
               const unsigned char theirs[LINK_NONCE])
{
    unsigned char both[2 * LINK_NONCE];

    *link = (struct link){.fd = link->fd, .is_server = is_server};
    memcpy(both, is_server ? mine : theirs, LINK_NONCE);
    memcpy(both + LINK_NONCE, is_server ? theirs : mine, LINK_NONCE);
    crypto_generichash(link->key, LINK_KEY, both, sizeof(both), key, LINK_KEY);
}

/* Write the nonce of the n-th word in this direction. */
static void number(unsigned char nonce[crypto_secretbox_NONCEBYTES],
                   int is_servers, uint64_t n)
{
    memset(nonce, 0, crypto_secretbox_NONCEBYTES);
    nonce[0] = (unsigned char)is_servers;
    for (int i = 0; i < 8; i++)
        nonce[1 + i] = (unsigned char)(n >> (8 * i));
}

/* ---- words ----------------------------------------------------------------- */

int link_put(struct link *link, const char *word)
{
    unsigned char nonce[crypto_secretbox_NONCEBYTES], sealed[LINK_SEALED];
    char text[LINK_WORD] = "";

    if (link->fd < 0)
        return -1;
    snprintf(text, sizeof(text), "%s", word);
    number(nonce, link->is_server, link->n_put++);
    crypto_secretbox_easy(sealed, (unsigned char *)text, sizeof(text), nonce,
                          link->key);
    sodium_memzero(text, sizeof(text));
    /* a run has few messages, so a full buffer means that the peer no longer reads */
    return send(link->fd, sealed, sizeof(sealed), MSG_NOSIGNAL) ==
                   (ssize_t)sizeof(sealed)
               ? 0
               : -1;
}

int link_fill(struct link *link, size_t len)
{
    while (link->n_held < len) {
        ssize_t n =
            recv(link->fd, link->held + link->n_held, len - link->n_held, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return -1;
        link->n_held += (size_t)n;
    }
    link->n_held = 0;
    return 1;
}

int link_take(struct link *link, char word[LINK_WORD])
{
    unsigned char nonce[crypto_secretbox_NONCEBYTES];
    int is_there = link->fd < 0 ? -1 : link_fill(link, LINK_SEALED);

    if (is_there <= 0)
        return is_there;
    number(nonce, !link->is_server, link->n_taken++);
    if (crypto_secretbox_open_easy((unsigned char *)word, link->held,
                                   LINK_SEALED, nonce, link->key))
        return -1;
    word[LINK_WORD - 1] = '\0';
    return 1;
}

int link_await(struct link *link, double deadline, char word[LINK_WORD])
{
    struct pollfd pfd = {.fd = link->fd, .events = POLLIN};
    int is_there;

    while (!(is_there = link_take(link, word))) {
        double left = deadline - now();

        if (left <= 0)
            return -1;
        poll(&pfd, 1, left > 60 ? 60000 : (int)(left * 1000) + 1);
    }
    return is_there;
}

void link_close(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    sodium_memzero(link->key, sizeof(link->key));
}
