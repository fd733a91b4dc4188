// The binding to toml++, a C++ library that reads TOML. The binding calls functions of a visitor, so that Swift needs no C++.
#ifndef STORMY_CTOMLPLUSPLUS_H
#define STORMY_CTOMLPLUSPLUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A text in UTF-8, without a NUL at the end.
typedef struct {
    const char *_Nonnull start;
    size_t count;
} ctoml_text;

// A position in the text. Lines and columns are counted from 1, and columns count Unicode scalars. 0 means that the position is
// not known.
typedef struct {
    uint32_t line;
    uint32_t column;
} ctoml_place;

typedef enum {
    ctoml_kind_list,
    ctoml_kind_text,
    ctoml_kind_integer,
    ctoml_kind_number,
    ctoml_kind_boolean,
    ctoml_kind_date,
    ctoml_kind_time,
    ctoml_kind_date_time,
} ctoml_kind;

// A value. Only the member for `kind` is set. Lists, dates and times have only a kind.
typedef struct {
    ctoml_kind kind;
    ctoml_text text;
    int64_t integer;
    double number;
    bool boolean;
} ctoml_value;

// The functions that receive the contents of a document. The arguments of these functions are valid only during the call.
typedef struct {
    void *_Nonnull context;
    // A table with this key begins. The next calls are about the contents of this table.
    void (*_Nonnull enter)(void *_Nonnull context, ctoml_text key, ctoml_place place);
    void (*_Nonnull leave)(void *_Nonnull context);
    void (*_Nonnull value)(void *_Nonnull context, ctoml_text key, ctoml_place place, const ctoml_value *_Nonnull value);
    // An element of the list that the last call of `value` reported. Lists and tables inside the list have the kind
    // ctoml_kind_list.
    void (*_Nonnull item)(void *_Nonnull context, const ctoml_value *_Nonnull value);
    // The text is not TOML. `words` is the message of toml++. No other function was called before.
    void (*_Nonnull refused)(void *_Nonnull context, ctoml_text words, ctoml_place place);
} ctoml_visitor;

void ctoml_visit(ctoml_text text, const ctoml_visitor *_Nonnull visitor);

#ifdef __cplusplus
}
#endif
#endif
