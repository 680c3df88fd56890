/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - which PCI devices a rank could compute on, if no driver says so.
 *
 * A server's VGA chip (ASPEED, Matrox, ...) and a virtual machine's screen are display
 * controllers too, so the PCI class is not enough.  A GPU for computing has a vendor that
 * makes programmable GPUs, and is a product with programmable units.
 */
#include "lib/topo/machine.h"
#include "lib/util/util.h"

enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de, VENDOR_INTEL = 0x8086 };
enum { CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12 };

/* Products without programmable units. */
static const struct {
    unsigned vendor, first, last;
} fixed_function[] = {
    {VENDOR_AMD, 0x3000, 0x5fff},    /* Mach64, Rage, up to R400; ES1000 */
    {VENDOR_AMD, 0x7100, 0x72ff},    /* R500 */
    {VENDOR_AMD, 0x7830, 0x7aff},    /* RS350 to RS600 */
    {VENDOR_NVIDIA, 0x0000, 0x018f}, /* up to NV4x */
    {VENDOR_NVIDIA, 0x01a0, 0x03ff}, /* nForce, G7x */
};

static int is_fixed_function(unsigned vendor, unsigned device)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed_function); i++)
        if (fixed_function[i].vendor == vendor &&
            fixed_function[i].first <= device &&
            device <= fixed_function[i].last)
            return 1;
    return 0;
}

/* Intel's integrated graphics are always at this PCI address; cards never are. */
static int is_within_processor(const struct coll__pci *pci)
{
    return !pci->domain && !pci->bus && pci->slot == 2;
}

int coll__pci_computes(const struct coll__pci *pci)
{
    unsigned base = pci->class_id >> 8;

    switch (pci->vendor) {
    case VENDOR_AMD: /* its largest products are accelerators without a screen */
        return (base == CLASS_DISPLAY || base == CLASS_ACCELERATOR) &&
               !is_fixed_function(pci->vendor, pci->device);
    case VENDOR_NVIDIA:
        return base == CLASS_DISPLAY &&
               !is_fixed_function(pci->vendor, pci->device);
    case VENDOR_INTEL:
        return base == CLASS_DISPLAY && !is_within_processor(pci);
    default:
        return 0;
    }
}
