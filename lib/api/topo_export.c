/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_export.c - coll_topo_export(). */
#include "lib/run/stream_calls.h"
#include "lib/topo/topo.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"

static int export(enum coll_topo_format format, char **text)
{
    struct coll__topo *topo;
    int status;

    if (!text) {
        log_error("topo", "coll_topo_export() needs a place for the text; "
                          "pass the address of a char pointer");
        return COLL_ERR_INVALID;
    }
    status = coll__topo_create(&topo);
    if (status)
        return status;
    if (coll__stream_calls && !coll__param_is_set(PARAM_TOPO_FILE))
        status = coll__stream_calls->describe(topo);
    if (!status)
        status = coll__topo_format(topo, format, text);
    coll__topo_destroy(topo);
    return status;
}

int coll_topo_export(enum coll_topo_format format, char **text)
{
    return coll__log_done(export(format, text));
}
