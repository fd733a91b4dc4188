// Functions of CoreFoundation that Foundation's library on Linux exports. The modules of Foundation do not declare these
// functions. The source is CoreFoundation's headers in swift-corelibs-foundation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef const struct CCFString *CCFStringRef;
typedef const struct CCFBundle *CCFBundleRef;
typedef struct CCFDictionary *CCFDictionaryRef;

#define CCF_ENCODING_UTF8 0x08000100u

CCFBundleRef _Nullable CFBundleGetMainBundle(void);
CCFDictionaryRef _Nullable CFBundleGetInfoDictionary(CCFBundleRef _Nonnull bundle);
void CFDictionarySetValue(CCFDictionaryRef _Nonnull dictionary, const void *_Nonnull key, const void *_Nonnull value);
CCFStringRef _Nullable CFStringCreateWithCString(const void *_Nullable allocator, const char *_Nonnull text, uint32_t encoding);
void CFRelease(const void *_Nonnull object);
// Returns true if everything was written, or if there was nothing to write.
bool CFPreferencesAppSynchronize(CCFStringRef _Nonnull application);
