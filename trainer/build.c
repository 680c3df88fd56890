/* SPDX-License-Identifier: BSD-3-Clause */
/* build.c - print the build in the layout of horovodrun --check-build. */
#include "trainer/build.h"
#include "coll/coll.h"
#include "trainer/device.h"
#include "trainer/onednn.h"

#include <stdio.h>
#include <string.h>

static void print_feature(const struct coll_feature *feature)
{
    printf("    [%c] %s", feature->is_built ? 'X' : ' ', feature->name);
    if (feature->detail && *feature->detail)
        printf(" (%s)", feature->detail);
    putchar('\n');
}

/* Say whether the trainer computes on GPUs, by which versions, or what is missing. */
static void print_gpus(const char *group)
{
    int number;
    const struct device *gpu = device_find("cuda", &number);
    char text[400] = "not built: configure found no headers of cuDNN";
    struct coll_feature cudnn = {group, "cuDNN", text, 0};

    if (gpu)
        cudnn.is_built = !gpu->about.libraries(text, sizeof(text));
    print_feature(&cudnn);
}

void build_print(void)
{
    const struct coll_feature kernels = {"Trainer kernels", "oneDNN",
                                         onednn_version(), 1};
    struct coll_feature feature;
    const char *group = "";

    printf("libcoll v%s:\n", coll_version());
    for (size_t i = 0; !coll_feature_list(i, &feature); i++) {
        if (strcmp(feature.group, group))
            printf("\nAvailable %s:\n", feature.group);
        group = feature.group;
        print_feature(&feature);
    }
    printf("\nAvailable %s:\n", kernels.group);
    print_feature(&kernels);
    print_gpus(kernels.group);
}
