#ifndef STORMY_COPENSSL_SHIM_H
#define STORMY_COPENSSL_SHIM_H

#include <openssl/ssl.h>

#endif
