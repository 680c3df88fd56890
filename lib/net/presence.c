/* SPDX-License-Identifier: BSD-3-Clause */
/* presence.c - see presence.h. */
#include "lib/net/presence.h"
#include "lib/net/auth.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Every user of the host can list such names, so the name is a hash of the token. */
static socklen_t name_of(const unsigned char token[COLL__PRESENCE_BYTES],
                         struct sockaddr_un *name)
{
    char text[2 * COLL__PRESENCE_BYTES + 1];
    unsigned char hash[COLL__SECRET_BYTES];
    int len;

    coll__auth_hex(token, COLL__PRESENCE_BYTES, text);
    coll__auth_from_text(text, hash);
    coll__auth_hex(hash, COLL__PRESENCE_BYTES, text);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "coll-%s",
                   text);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)len);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int coll__presence_open(unsigned char token[COLL__PRESENCE_BYTES])
{
    struct sockaddr_un name;
    int fd = open_socket();

    coll__auth_random(token, COLL__PRESENCE_BYTES);
    if (fd >= 0) {
        shutdown(fd, SHUT_RD); /* it receives nothing */
        if (!bind(fd, (struct sockaddr *)&name, name_of(token, &name)))
            return fd;
        close(fd);
    }
    log_debug("boot", "this process cannot show that it is on its host: %s",
              strerror(errno));
    memset(token, 0, COLL__PRESENCE_BYTES);
    return -1;
}

/* ---- of this process; under the reactor's lock ---------------------------- */

static void nothing(struct coll__source *source, uint32_t events)
{
    (void)source, (void)events;
}

static void dropped(struct coll__source *source) { source->fd = -1; }

static unsigned char own[COLL__PRESENCE_BYTES];
static struct coll__source source = {
    .fd = -1, .ready = nothing, .dropped = dropped};

void coll__presence_self(unsigned char token[COLL__PRESENCE_BYTES])
{
    if (source.fd < 0) {
        source.fd = coll__presence_open(own);
        if (source.fd >= 0 && coll__reactor_add(&source)) {
            close(source.fd);
            source.fd = -1;
            memset(own, 0, sizeof(own));
        }
    }
    memcpy(token, own, sizeof(own));
}

/* ---- of others ------------------------------------------------------------ */

int coll__presence_is_missing(const unsigned char token[COLL__PRESENCE_BYTES])
{
    static const unsigned char none[COLL__PRESENCE_BYTES];
    struct sockaddr_un name;
    socklen_t len = name_of(token, &name);
    int fd = memcmp(token, none, sizeof(none)) ? open_socket() : -1, is_missing;

    if (fd < 0)
        return 0;
    is_missing =
        connect(fd, (struct sockaddr *)&name, len) && errno == ECONNREFUSED;
    close(fd);
    return is_missing;
}
