// The binding to libnotify and to the parts of GIO that libnotify uses. The binding wraps only functions and macros that Swift
// cannot call: variadic functions (g_object_new, g_object_get) and macros that cast (g_signal_connect, G_CALLBACK).
#ifndef STORMY_CLIBNOTIFY_SHIM_H
#define STORMY_CLIBNOTIFY_SHIM_H
#include <gio/gio.h>
#include <libnotify/notify.h>

// "id" is a construct property. If the id belongs to a notification of an earlier process, the new object replaces or closes that
// notification.
static inline NotifyNotification *stormy_notification_new(gint id) {
    return (NotifyNotification *)g_object_new(NOTIFY_TYPE_NOTIFICATION, "id", id, NULL);
}

static inline gint stormy_notification_id(NotifyNotification *notification) {
    gint id = 0;
    g_object_get(notification, "id", &id, NULL);
    return id;
}

// libnotify sets the id to 0 when the server closes a notification with this id, even if the content was only replaced.
static inline void stormy_notification_set_id(NotifyNotification *notification, gint id) {
    g_object_set(notification, "id", id, NULL);
}

static inline gulong stormy_connect_bus_closed(
    GDBusConnection *connection, void (*handler)(GDBusConnection *, gboolean, GError *, gpointer), gpointer data) {
    return g_signal_connect(connection, "closed", G_CALLBACK(handler), data);
}

static inline gulong stormy_connect_network_changed(
    GNetworkMonitor *monitor, void (*handler)(GNetworkMonitor *, gboolean, gpointer), gpointer data) {
    return g_signal_connect(monitor, "network-changed", G_CALLBACK(handler), data);
}

static inline gulong stormy_connect_network_metered(
    GNetworkMonitor *monitor, void (*handler)(GNetworkMonitor *, GParamSpec *, gpointer), gpointer data) {
    return g_signal_connect(monitor, "notify::network-metered", G_CALLBACK(handler), data);
}

static inline gulong stormy_connect_power_saver(
    GPowerProfileMonitor *monitor, void (*handler)(GPowerProfileMonitor *, GParamSpec *, gpointer), gpointer data) {
    return g_signal_connect(monitor, "notify::power-saver-enabled", G_CALLBACK(handler), data);
}

static inline gulong stormy_connect_file_changed(
    GFileMonitor *monitor, void (*handler)(GFileMonitor *, GFile *, GFile *, GFileMonitorEvent, gpointer),
    gpointer data) {
    return g_signal_connect(monitor, "changed", G_CALLBACK(handler), data);
}

#endif
