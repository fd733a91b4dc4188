// Digests and HMAC alone: who needs no TLS links no libssl.
#ifndef STORMY_CLIBCRYPTO_SHIM_H
#define STORMY_CLIBCRYPTO_SHIM_H

#include <openssl/evp.h>
#include <openssl/hmac.h>

#endif
