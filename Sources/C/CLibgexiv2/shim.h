// The door to gexiv2, which reads and writes the metadata of pictures. Nothing is wrapped: Swift can call all of it.
#ifndef STORMY_CLIBGEXIV2_SHIM_H
#define STORMY_CLIBGEXIV2_SHIM_H
#include <gexiv2/gexiv2.h>
#endif
