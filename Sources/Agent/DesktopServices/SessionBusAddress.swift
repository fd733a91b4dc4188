/// Which address of the session bus to try. Pure.
enum SessionBusAddress {
    /// The address to connect to, or nil when none is known and so no attempt may be made: GLib, asked without an
    /// address, would start a bus of its own through X11 ("autolaunch"), on which nobody else is.
    ///
    /// - Parameters:
    ///   - given: told by the caller just now.
    ///   - known: the process's DBUS_SESSION_BUS_ADDRESS.
    ///   - runtimeDirectory: the process's XDG_RUNTIME_DIR.
    ///   - isSocket: whether a socket lies at a path.
    static func choose(
        given: String?, known: String?, runtimeDirectory: String?, isSocket: (String) -> Bool
    ) -> String? {
        if let address = given.flatMap(withoutAutolaunch) { return address }
        if let address = known.flatMap(withoutAutolaunch) { return address }
        guard let runtimeDirectory, runtimeDirectory.hasPrefix("/") else { return nil }
        let path = runtimeDirectory + "/bus"
        return isSocket(path) ? "unix:path=" + escaped(path) : nil
    }

    /// An address is a list of alternatives; every "autolaunch:" among them is dropped.
    static func withoutAutolaunch(_ address: String) -> String? {
        let entries = address.split(separator: ";").filter { !$0.hasPrefix("autolaunch:") }
        return entries.isEmpty ? nil : entries.joined(separator: ";")
    }

    /// D-Bus addresses escape all but a few bytes as %hh.
    private static func escaped(_ path: String) -> String {
        var result = ""
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16)
                result += digits.utf8.count == 1 ? "%0" + digits : "%" + digits
            }
        }
        return result
    }
}
