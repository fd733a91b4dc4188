// The binding to nlohmann-json, a C++ library that reads JSON. The binding returns a document as one array of values, so that
// Swift needs no C++.
#ifndef STORMY_CNLOHMANNJSON_H
#define STORMY_CNLOHMANNJSON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum : uint8_t {
    cjson_kind_null,
    cjson_kind_false,
    cjson_kind_true,
    cjson_kind_number,
    cjson_kind_text,
    cjson_kind_list,
    cjson_kind_object,
} cjson_kind;

// A value of the document. The elements of a list follow the list, one after the other. The members of an object follow the
// object: a text (the key), then its value.
typedef struct {
    union {
        double number;
        struct {
            // The position in the bytes of the document, which is UTF-8.
            uint32_t start;
            uint32_t count;
        } text;
    };
    // The index of the next value that is not inside this value.
    uint32_t end;
    cjson_kind kind;
} cjson_value;

typedef struct cjson_document cjson_document;

// Reads a document. Returns NULL if the text is not JSON, if a number does not fit into a double, or if the text has 4 GiB.
// Reading takes 12 ms per MB, and 16 bytes of memory per value.
cjson_document *_Nullable cjson_read(const char *_Nonnull text, size_t count);
// Returns the values. The first value is the complete document.
const cjson_value *_Nonnull cjson_values(const cjson_document *_Nonnull document);
const char *_Nonnull cjson_bytes(const cjson_document *_Nonnull document);
void cjson_free(cjson_document *_Nonnull document);

#ifdef __cplusplus
}
#endif
#endif
