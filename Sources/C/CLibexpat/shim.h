#ifndef STORMY_CLIBEXPAT_SHIM_H
#define STORMY_CLIBEXPAT_SHIM_H

#include <expat.h>

#endif
