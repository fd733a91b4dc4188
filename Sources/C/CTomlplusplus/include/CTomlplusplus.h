// The door to toml++, which reads TOML. It is C++, which Swift is spared: a text becomes calls of a visitor.
#ifndef STORMY_CTOMLPLUSPLUS_H
#define STORMY_CTOMLPLUSPLUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// UTF-8, not ended by a NUL.
typedef struct {
    const char *_Nonnull start;
    size_t count;
} ctoml_text;

// Both from 1; columns count Unicode scalars. 0: not known.
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

// What is meant by its kind; nothing of lists, dates and times.
typedef struct {
    ctoml_kind kind;
    ctoml_text text;
    int64_t integer;
    double number;
    bool boolean;
} ctoml_value;

// Everything passed lives as long as the call.
typedef struct {
    void *_Nonnull context;
    // What follows is in the table that this key has.
    void (*_Nonnull enter)(void *_Nonnull context, ctoml_text key, ctoml_place place);
    void (*_Nonnull leave)(void *_Nonnull context);
    void (*_Nonnull value)(void *_Nonnull context, ctoml_text key, ctoml_place place, const ctoml_value *_Nonnull value);
    // An element of the list that was the last value; a list or a table in it is one of kind list.
    void (*_Nonnull item)(void *_Nonnull context, const ctoml_value *_Nonnull value);
    // It is no TOML, in the library's words; nothing else was called.
    void (*_Nonnull refused)(void *_Nonnull context, ctoml_text words, ctoml_place place);
} ctoml_visitor;

void ctoml_visit(ctoml_text text, const ctoml_visitor *_Nonnull visitor);

#ifdef __cplusplus
}
#endif
#endif
