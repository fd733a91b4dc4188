// The door to nlohmann-json, which reads JSON. It is C++, which Swift is spared: a text becomes one array of values.
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

// A value. The elements of a list follow it, one after the other; of an object, a text and its value in turn.
typedef struct {
    union {
        double number;
        struct {
            // In the bytes of the document, UTF-8.
            uint32_t start;
            uint32_t count;
        } text;
    };
    // Where the next value is that is not inside this one.
    uint32_t end;
    cjson_kind kind;
} cjson_value;

typedef struct cjson_document cjson_document;

// NULL: it is no JSON, or has a number that no double has, or is of 4 GiB. Cost: 12 ms per MB; 16 bytes per value.
cjson_document *_Nullable cjson_read(const char *_Nonnull text, size_t count);
// The first is the whole.
const cjson_value *_Nonnull cjson_values(const cjson_document *_Nonnull document);
const char *_Nonnull cjson_bytes(const cjson_document *_Nonnull document);
void cjson_free(cjson_document *_Nonnull document);

#ifdef __cplusplus
}
#endif
#endif
