/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_check.c - what this build can do, in the layout of horovodrun --check-build. */
#include "tools/collrun.h"

#include <coll/coll.h>

#include <stdio.h>
#include <string.h>

void check_build(void)
{
    struct coll_feature feature;
    const char *group = "";

    printf("libcoll v%s:\n", coll_version());
    for (size_t i = 0; !coll_feature_list(i, &feature); i++) {
        if (strcmp(feature.group, group))
            printf("\nAvailable %s:\n", feature.group);
        group = feature.group;
        printf("    [%c] %s", feature.is_built ? 'X' : ' ', feature.name);
        if (feature.detail && *feature.detail)
            printf(" (%s)", feature.detail);
        putchar('\n');
    }
}
