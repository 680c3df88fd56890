/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_load.c - load libucp when UCX is first used; libcoll is not linked with it.
 *
 * UCX changes the process already when it is loaded: it installs handlers of SIGHUP and
 * of the signals of program faults, and UCX 1.13 aborts on a host whose name is too long
 * for its buffer.  A program that uses another transport is spared this.  In a program
 * that uses UCX, the signal handlers are restored after UCX is loaded.
 */
#include "transports/ucx.h"
#include "lib/util/util.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ucx_entries coll__ucx;

/* Why UCX is not loaded; "": it is loaded.  Written once, under `once`. */
static char fault[512] = "not loaded";
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- signals ----------------------------------------------------------------- */

/* The program's own handler of each signal. */
struct signals {
    struct sigaction actions[NSIG];
    int is_known[NSIG]; /* else it is the C library's own */
};

static void signals_get(struct signals *signals)
{
    for (int s = 1; s < NSIG; s++)
        signals->is_known[s] = !sigaction(s, NULL, &signals->actions[s]);
}

/* Is the function in the library that has `symbol`? */
static int is_of(const void *function, const void *symbol)
{
    Dl_info one, other;

    return dladdr(function, &one) && dladdr(symbol, &other) &&
           one.dli_fbase == other.dli_fbase;
}

/* A user who sets one of these variables wants UCX's handlers. */
static int are_wanted(void)
{
    return getenv("UCX_HANDLE_ERRORS") || getenv("UCX_DEBUG_SIGNO");
}

/* Remove UCX's handlers.  If another thread has set a handler of its own meanwhile, it
 * stays. */
static void signals_restore(const struct signals *signals, const void *libucs)
{
    for (int s = 1; s < NSIG; s++) {
        struct sigaction now;
        const void *handler;

        if (!signals->is_known[s] || sigaction(s, NULL, &now))
            continue;
        handler = now.sa_flags & SA_SIGINFO ? (void *)now.sa_sigaction
                                            : (void *)now.sa_handler;
        if (handler && is_of(handler, libucs))
            sigaction(s, &signals->actions[s], NULL);
    }
}

/* ---- loading ------------------------------------------------------------------- */

/* UCX 1.13 has HOST_NAME_MAX bytes for the host's name and its NUL, and aborts if it is
 * longer. */
static int is_name_too_long(void)
{
    char name[HOST_NAME_MAX + 1];
    size_t len;

    if (gethostname(name, sizeof(name)))
        return 0;
    len = strnlen(name, sizeof(name));
    if (len < HOST_NAME_MAX)
        return 0;
    snprintf(
        fault, sizeof(fault),
        "the name of this host has %zu characters, and UCX aborts where there "
        "are more than %d; give the host a shorter name (hostname), or leave "
        "ucx out of COLL_TRANSPORTS",
        len, HOST_NAME_MAX - 1);
    return 1;
}

/* dlsym() returns a data pointer, but entries are functions: convert through a union. */
static void find_entries(void *library)
{
    static const char *const names[] = {
#define X(name) #name,
        COLL__UCX_MAP(X)
#undef X
    };
    union {
        struct ucx_entries entries;
        void *found[ARRAY_LEN(names)];
    } table;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        table.found[i] = dlsym(library, names[i]);
        if (!table.found[i]) {
            snprintf(fault, sizeof(fault),
                     "libucp.so.0 has no %s; install UCX 1.12 or later",
                     names[i]);
            return;
        }
    }
    coll__ucx = table.entries;
    fault[0] = '\0';
}

/* The library stays loaded: UCX has threads of its own. */
static void load(void)
{
    struct signals signals;
    void *library, *libucs;

    if (is_name_too_long())
        return;
    signals_get(&signals);
    library = dlopen(COLL_UCX_FOLDER "libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(
            fault, sizeof(fault),
            "UCX cannot be loaded: %s; install it (Debian: apt-get install "
            "libucx0), or leave ucx out of COLL_TRANSPORTS",
            dlerror());
        return;
    }
    libucs = dlsym(library, "ucs_status_string");
    if (libucs && !are_wanted())
        signals_restore(&signals, libucs);
    find_entries(library);
}

const char *coll__ucx_load(void)
{
    pthread_once(&once, load);
    return fault[0] ? fault : NULL;
}

void coll__ucx_loaded(char *text, size_t len)
{
    const char *why = coll__ucx_load();
    Dl_info info = {0};
    void *at;

    if (why) {
        snprintf(text, len, "none: %s", why);
        return;
    }
    memcpy(&at, &coll__ucx.ucp_get_version_string, sizeof(at)); /* ISO C has no
                                                                 * cast for that */
    if (dladdr(at, &info) && info.dli_fname)
        snprintf(text, len, "%s, %s", coll__ucx.ucp_get_version_string(),
                 info.dli_fname);
    else
        snprintf(text, len, "%s", coll__ucx.ucp_get_version_string());
}
