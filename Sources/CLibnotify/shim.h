#ifndef STORMY_CLIBNOTIFY_SHIM_H
#define STORMY_CLIBNOTIFY_SHIM_H
#include <libnotify/notify.h>
#endif
