import CLibnotify

/// Shows a number on an app's icon. Docks and panels that support Unity's launcher signal show the number, for example Plasma,
/// Dash to Dock and Plank.
enum LauncherBadge {
    /// Sends the number to all docks by a broadcast signal without a reply. A count of 0 hides the number.
    static func show(_ count: Int, desktopEntry: String, on connection: OpaquePointer) {
        var entries: [OpaquePointer?] = [
            entry("count", g_variant_new_int64(gint64(count))), entry("count-visible", g_variant_new_boolean(count > 0 ? 1 : 0)),
        ]
        let type = g_variant_type_new("{sv}")
        defer { g_variant_type_free(type) }
        var parameters: [OpaquePointer?] = [
            g_variant_new_string("application://\(NoticeText.withoutControls(desktopEntry)).desktop"),
            g_variant_new_array(type, &entries, gsize(entries.count)),
        ]
        g_dbus_connection_emit_signal(
            connection, nil, "/com/canonical/unity/launcherentry/1", "com.canonical.Unity.LauncherEntry", "Update",
            g_variant_new_tuple(&parameters, 2), nil)
    }

    private static func entry(_ key: String, _ value: OpaquePointer?) -> OpaquePointer? {
        g_variant_new_dict_entry(g_variant_new_string(key), g_variant_new_variant(value))
    }
}
