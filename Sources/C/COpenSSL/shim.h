// The binding to OpenSSL. The binding wraps only what Swift cannot call: macros and variadic functions.
#ifndef STORMY_COPENSSL_SHIM_H
#define STORMY_COPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static inline EVP_PKEY *copenssl_new_p256_key(void) { return EVP_EC_gen("P-256"); }

static inline int copenssl_set_least_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}

// Adds an extension to a certificate. The value has the format of OpenSSL's configuration files, for example "critical,CA:TRUE".
static inline int copenssl_add_extension(X509 *certificate, int identifier, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, identifier, value);
    int added = extension != NULL && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

#endif
