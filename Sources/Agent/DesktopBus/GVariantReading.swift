import CLibnotify

/// Reads GLib values that arrived over a bus. The type of each value is checked, because another process can send any type.
package enum GVariantReading {
    package static func type(of variant: OpaquePointer) -> String { String(cString: g_variant_get_type_string(variant)) }

    /// Returns the members of a tuple or an array that contains only texts. Returns `nil` if the value has another type.
    package static func strings(_ variant: OpaquePointer, ofType type: String) -> [String]? {
        guard self.type(of: variant) == type else { return nil }
        return children(of: variant) { String(cString: g_variant_get_string($0, nil)) }
    }

    /// Returns the members of a container, in their order.
    package static func children<Value>(of variant: OpaquePointer, _ read: (OpaquePointer) -> Value) -> [Value] {
        (0..<g_variant_n_children(variant)).compactMap { index in
            guard let child = g_variant_get_child_value(variant, index) else { return nil }
            defer { g_variant_unref(child) }
            return read(child)
        }
    }

    /// Returns a value of a dictionary that `read` decoded. Returns `nil` if the value is missing or its type is not `type`.
    package static func value<Value>(
        _ key: String, ofType type: String, in dictionary: OpaquePointer, _ read: (OpaquePointer) -> Value
    ) -> Value? {
        guard self.type(of: dictionary) == "a{sv}", let value = g_variant_lookup_value(dictionary, key, nil) else { return nil }
        defer { g_variant_unref(value) }
        return self.type(of: value) == type ? read(value) : nil
    }
}
