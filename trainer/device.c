/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - the devices that this program was built with. */
#include "trainer/device.h"
#include "trainer/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device *const devices[] = {
#if COLL_HAVE_CUDNN
    &device_cuda,
#endif
    &device_cpu,
};

#define N_DEVICES (sizeof(devices) / sizeof(devices[0]))
#define MOST_DIGITS 4 /* of a GPU's number */

const char *precision_name(enum precision precision)
{
    static const char *const names[] = {[PRECISION_F32] = "f32",
                                        [PRECISION_TF32] = "tf32",
                                        [PRECISION_BF16] = "bf16"};

    return names[precision];
}

/* Return the text behind "cuda", or NULL if the text begins otherwise. */
static const char *behind_cuda(const char *text)
{
    return strncmp(text, "cuda", 4) ? NULL : text + 4;
}

/* Return 1 if the text is ":" and a number. */
static int is_number(const char *text)
{
    size_t n = *text == ':' ? strspn(text + 1, "0123456789") : 0;

    return n > 0 && n <= MOST_DIGITS && !text[1 + n];
}

int device_is_word(const char *text)
{
    const char *rest = behind_cuda(text);

    return !strcmp(text, "auto") || !strcmp(text, "cpu") ||
           (rest && (!*rest || is_number(rest)));
}

static const struct device *find_name(const char *name)
{
    for (size_t i = 0; i < N_DEVICES; i++)
        if (!strcmp(devices[i]->name, name))
            return devices[i];
    return NULL;
}

const struct device *device_find(const char *text, int *number)
{
    const char *rest = behind_cuda(text);
    const struct device *found = find_name(rest ? "cuda" : text);

    *number = rest && *rest ? atoi(rest + 1) : -1;
    if (!found)
        train_refuse("--device %s: this coll_train was built without cuDNN; "
                     "install the headers of cuDNN 9 and configure again, or "
                     "give --device cpu",
                     text);
    return found;
}

int device_find_gpu(char *why, size_t len)
{
    const struct device *gpu = find_name("cuda");

    if (gpu)
        return gpu->about.probe(why, len);
    snprintf(why, len, "this coll_train was built without cuDNN");
    return -1;
}
