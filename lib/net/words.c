/* SPDX-License-Identifier: BSD-3-Clause */
/* words.c - sealed words of one length on a connection. */
#include "lib/net/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Both nonces are in the keys, the server's first. */
void coll__words_init(struct coll__words *words, int is_server,
                      const unsigned char secret[COLL__SECRET_BYTES],
                      const unsigned char mine[COLL__NONCE_BYTES],
                      const unsigned char theirs[COLL__NONCE_BYTES])
{
    unsigned char both[2 * COLL__NONCE_BYTES], session[COLL__MAC_BYTES];

    *words = (struct coll__words){.fd = words->fd};
    memcpy(both, is_server ? mine : theirs, COLL__NONCE_BYTES);
    memcpy(both + COLL__NONCE_BYTES, is_server ? theirs : mine,
           COLL__NONCE_BYTES);
    coll__auth_mac(secret, "words", both, sizeof(both), session);
    coll__seal_init(is_server ? &words->put : &words->take, session, "server");
    coll__seal_init(is_server ? &words->take : &words->put, session, "client");
    coll__auth_wipe(session, sizeof(session));
}

int coll__words_put(struct coll__words *words, const char *word)
{
    unsigned char sealed[COLL__WORD_SEALED];
    char text[COLL__WORD] = "";

    if (words->fd < 0)
        return -1;
    snprintf(text, sizeof(text), "%s", word);
    coll__seal_put(&words->put, sealed, text, sizeof(text));
    coll__auth_wipe(text, sizeof(text));
    /* there are few words, so a full buffer means that the peer no longer reads */
    return send(words->fd, sealed, sizeof(sealed), MSG_NOSIGNAL) ==
                   (ssize_t)sizeof(sealed)
               ? 0
               : -1;
}

int coll__words_fill(struct coll__words *words, size_t len)
{
    while (words->n_held < len) {
        ssize_t n = recv(words->fd, words->held + words->n_held,
                         len - words->n_held, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return -1;
        words->n_held += (size_t)n;
    }
    words->n_held = 0;
    return 1;
}

int coll__words_take(struct coll__words *words, char word[COLL__WORD])
{
    int is_there =
        words->fd < 0 ? -1 : coll__words_fill(words, COLL__WORD_SEALED);

    if (is_there <= 0)
        return is_there;
    if (coll__seal_take(&words->take, word, words->held, COLL__WORD))
        return -1;
    word[COLL__WORD - 1] = '\0';
    return 1;
}

void coll__words_close(struct coll__words *words)
{
    if (words->fd >= 0)
        close(words->fd);
    words->fd = -1;
    coll__auth_wipe(&words->put, sizeof(words->put));
    coll__auth_wipe(&words->take, sizeof(words->take));
}
