// The functions of libcairo.so.2 that draw a PNG. The functions are loaded when they are first needed. The source is cairo.h of
// version 1.16. The ABI of cairo has been stable since version 1.0.
#pragma once

#include <dlfcn.h>
#include <stddef.h>

typedef struct ccairo_context ccairo_context;
typedef struct ccairo_surface ccairo_surface;
typedef struct {
    double bearing_x, bearing_y, width, height, advance_x, advance_y;
} ccairo_text_extents;
// The result 0 means that the bytes were written.
typedef int (*ccairo_writer)(void *_Nullable target, const unsigned char *_Nullable bytes, unsigned int count);

#define CCAIRO_FUNCTIONS(FUNCTION)                                                                                         \
    FUNCTION(ccairo_surface *_Nullable, image_surface_create, (int format, int width, int height))                         \
    FUNCTION(ccairo_context *_Nullable, create, (ccairo_surface *_Nonnull))                                                \
    FUNCTION(int, surface_write_to_png_stream, (ccairo_surface *_Nonnull, ccairo_writer _Nonnull, void *_Nullable target)) \
    FUNCTION(void, surface_destroy, (ccairo_surface *_Nonnull))                                                            \
    FUNCTION(void, destroy, (ccairo_context *_Nonnull))                                                                    \
    FUNCTION(void, paint, (ccairo_context *_Nonnull))                                                                      \
    FUNCTION(void, fill, (ccairo_context *_Nonnull))                                                                       \
    FUNCTION(void, stroke, (ccairo_context *_Nonnull))                                                                     \
    FUNCTION(void, scale, (ccairo_context *_Nonnull, double x, double y))                                                  \
    FUNCTION(void, move_to, (ccairo_context *_Nonnull, double x, double y))                                                \
    FUNCTION(void, line_to, (ccairo_context *_Nonnull, double x, double y))                                                \
    FUNCTION(void, rectangle, (ccairo_context *_Nonnull, double x, double y, double width, double height))                 \
    FUNCTION(void, set_source_rgba, (ccairo_context *_Nonnull, double red, double green, double blue, double alpha))       \
    FUNCTION(void, set_line_width, (ccairo_context *_Nonnull, double width))                                               \
    FUNCTION(void, set_dash, (ccairo_context *_Nonnull, const double *_Nullable lengths, int count, double offset))        \
    FUNCTION(void, select_font_face, (ccairo_context *_Nonnull, const char *_Nonnull family, int slant, int weight))       \
    FUNCTION(void, set_font_size, (ccairo_context *_Nonnull, double size))                                                 \
    FUNCTION(void, text_extents, (ccairo_context *_Nonnull, const char *_Nonnull text, ccairo_text_extents *_Nonnull))     \
    FUNCTION(void, show_text, (ccairo_context *_Nonnull, const char *_Nonnull text))

typedef struct {
#define CCAIRO_MEMBER(result, name, parameters) result(*_Nonnull name) parameters;
    CCAIRO_FUNCTIONS(CCAIRO_MEMBER)
#undef CCAIRO_MEMBER
} ccairo_functions;

// Returns NULL, or the name of the library or function that is missing. The library stays loaded.
static inline const char *_Nullable ccairo_load(ccairo_functions *_Nonnull functions) {
    void *library = dlopen("libcairo.so.2", RTLD_NOW);
    if (!library) return "libcairo.so.2";
#define CCAIRO_FIND(result, name, parameters) \
    if (!(functions->name = (__typeof__(functions->name))dlsym(library, "cairo_" #name))) return "cairo_" #name;
    CCAIRO_FUNCTIONS(CCAIRO_FIND)
#undef CCAIRO_FIND
    return NULL;
}
