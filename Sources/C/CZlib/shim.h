// The binding to zlib, for deflated metadata and for the checksums of PNG.
#ifndef STORMY_CZLIB_SHIM_H
#define STORMY_CZLIB_SHIM_H
#include <zlib.h>

// `inflateInit` is a macro, which Swift cannot call.
static inline int czlib_inflate_start(z_stream *stream) { return inflateInit(stream); }
#endif
