/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_load.c - plan files by libFuzzer: refused or proven, never believed.
 *
 * coll_plan --dump makes a corpus; test_load.c does the same with mutations of
 * its own, where there is no libFuzzer.
 */
#include "lib/proof/proof.h"

int LLVMFuzzerTestOneInput(const uint8_t *text, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *text, size_t len)
{
    struct coll__plans plans;
    char why[256];

    if (coll__plans_parse("fuzz", (const char *)text, len, &plans))
        return 0;
    coll__plans_check(&plans, 2, why, sizeof(why));
    coll__plans_fini(&plans);
    return 0;
}
