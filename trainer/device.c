/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - the devices that this program was built with. */
#include "trainer/device.h"

#include <string.h>

static const struct device *const devices[] = {&device_cpu};

const struct device *device_find(const char *name)
{
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
        if (!strcmp(devices[i]->name, name))
            return devices[i];
    return NULL;
}
