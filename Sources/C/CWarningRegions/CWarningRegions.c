#include "CWarningRegions.h"

// `#embed` is part of C23. The other C targets are compiled as C17.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t table[] = {
#embed "regions.bin"
};

const uint8_t *cwarningregions_bytes(void) { return table; }
size_t cwarningregions_count(void) { return sizeof table; }
