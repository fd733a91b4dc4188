// The binding to libcurl. The binding wraps only libcurl's variadic functions, because Swift cannot call variadic functions. Each
// type of argument has one typed wrapper.
#ifndef STORMY_CLIBCURL_SHIM_H
#define STORMY_CLIBCURL_SHIM_H

#include <curl/curl.h>

typedef size_t (*clibcurl_data_callback)(char *buffer, size_t size, size_t count, void *context);
typedef int (*clibcurl_progress_callback)(void *context, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
typedef int (*clibcurl_seek_callback)(void *context, curl_off_t offset, int origin);
typedef int (*clibcurl_prerequest_callback)(void *context, char *, char *, int, int);
typedef CURLcode (*clibcurl_tls_callback)(CURL *easy, void *tls, void *context);

static inline CURLcode clibcurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode clibcurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode clibcurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode clibcurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode clibcurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode clibcurl_set_data_callback(CURL *easy, CURLoption option, clibcurl_data_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}
static inline CURLcode clibcurl_set_progress_callback(CURL *easy, clibcurl_progress_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, callback);
}
static inline CURLcode clibcurl_set_seek_callback(CURL *easy, clibcurl_seek_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}
static inline CURLcode clibcurl_set_prerequest_callback(CURL *easy, clibcurl_prerequest_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}
static inline CURLcode clibcurl_set_tls_callback(CURL *easy, clibcurl_tls_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, callback);
}
static inline CURLcode clibcurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode clibcurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode clibcurl_get_string(CURL *easy, CURLINFO info, char **value) {
    return curl_easy_getinfo(easy, info, value);
}
// Returns OpenSSL's connection of a running transfer, or NULL if the transfer has no such connection.
static inline void *clibcurl_get_openssl(CURL *easy) {
    struct curl_tlssessioninfo *info = NULL;
    CURLcode code = curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info);
    return code == CURLE_OK && info && info->backend == CURLSSLBACKEND_OPENSSL ? info->internals : NULL;
}
// Returns the socket of a connection that libcurl opened without a transfer, or CURL_SOCKET_BAD if there is no such connection.
static inline curl_socket_t clibcurl_active_socket(CURL *easy) {
    curl_socket_t found = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &found) == CURLE_OK ? found : CURL_SOCKET_BAD;
}
static inline CURLMcode clibcurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
// `CURLMsg.data` is a union, which is awkward to use in Swift.
static inline CURLcode clibcurl_message_result(const CURLMsg *message) {
    return message->data.result;
}

#endif
