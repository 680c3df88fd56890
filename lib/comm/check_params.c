/* SPDX-License-Identifier: BSD-3-Clause */
/* check_params.c - check the environment's variables when a communicator is made. */
#include "lib/comm/check_params.h"
#include "lib/comm/comm.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <string.h>
#include <unistd.h>

/* Variables of the library's programs begin with these: benchmarks/compare's, an old one
 * of coll_train, which tells the user what has replaced it, and the one by which collrun
 * hands rank 0 its socket. */
static const char *const of_programs[] = {"COLL_COMPARE_", "COLL_DATA",
                                          "COLL_ROOT_FD"};

static int is_parameter(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(of_programs); i++)
        if (!strncmp(name, of_programs[i], strlen(of_programs[i])))
            return 1;
    for (int i = 0; i < N_PARAMS; i++)
        if (!strcmp(name, coll__param_name((enum coll__param)i)))
            return 1;
    return 0;
}

/* Warn of a variable that a limit of the tuning file has replaced; return whether it is
 * one. */
static int was_limit(const char *name)
{
    for (int i = 0; i < N_LIMITS; i++) {
        enum coll__limit id = (enum coll__limit)i;

        if (strcmp(name, coll__limit_variable(id)))
            continue;
        log_warn("param",
                 "%s is not read any more; set '%s' in the 'limits' of a "
                 "tuning file (COLL_TUNE_FILE)",
                 name, coll__limit_name(id));
        return 1;
    }
    return 0;
}

/* A variable (NAME=VALUE) looks like a parameter: is it one? */
static void judge_name(const char *variable)
{
    const char *names[N_PARAMS + 1] = {NULL};
    size_t len = strcspn(variable, "=");
    char name[64];

    if (strncmp(variable, "COLL_", 5) || len >= sizeof(name))
        return;
    memcpy(name, variable, len);
    name[len] = '\0';
    if (is_parameter(name) || was_limit(name))
        return;
    for (int i = 0; i < N_PARAMS; i++)
        names[i] = coll__param_name((enum coll__param)i);
    log_warn("param",
             "%s is no parameter; did you mean %s? see coll_info "
             "--params",
             name, coll__nearest(name, names));
}

int coll__params_check(void)
{
    for (int i = 0; i < N_PARAMS; i++) {
        enum coll__param id = (enum coll__param)i;
        const char *wants = coll__param_fault(id);

        if (wants) {
            log_error("param", "%s=%s is not valid: it must be %s",
                      coll__param_name(id), coll__param_text(id), wants);
            return COLL_ERR_INVALID;
        }
    }
    if (coll__log_check())
        return COLL_ERR_INVALID;
    for (char **variable = environ; variable && *variable; variable++)
        judge_name(*variable);
    return COLL_OK;
}
