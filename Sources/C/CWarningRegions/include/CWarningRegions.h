// The table of European warning regions, as bytes in the program. `Packaging/warning_regions.py` makes the table and states the format.
// The regions are EUMETNET's (MeteoAlarm), licence CC BY 4.0.
#ifndef STORMY_CWARNINGREGIONS_H
#define STORMY_CWARNINGREGIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The first byte of the table.
const uint8_t *_Nonnull cwarningregions_bytes(void);
// The number of bytes.
size_t cwarningregions_count(void);

#ifdef __cplusplus
}
#endif
#endif
