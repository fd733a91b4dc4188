// The binding to libcrypto, for digests and HMAC. CLibcrypto is separate from COpenSSL, so that modules without TLS do not link
// libssl.
#ifndef STORMY_CLIBCRYPTO_SHIM_H
#define STORMY_CLIBCRYPTO_SHIM_H

#include <openssl/evp.h>
#include <openssl/hmac.h>

#endif
