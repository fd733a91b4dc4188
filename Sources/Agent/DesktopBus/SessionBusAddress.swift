/// Decides which addresses of the session bus are tried. This type has no side effects.
package enum SessionBusAddress {
    /// Returns the addresses in the order in which they have to be tried. If the list is empty, do not connect. Without an
    /// address, GLib would start another bus through X11 ("autolaunch"), and no other program uses that bus.
    ///
    /// - Parameters:
    ///   - known: three addresses: the caller's address, the address of the previous connection, and the address in the
    ///     environment at the start of this process. The caller's address may belong to a bus that existed only during a command.
    ///   - runtimeDirectory: the XDG_RUNTIME_DIR of the process.
    ///   - isSocket: returns `true` if a path is a socket.
    package static func candidates(known: [String?], runtimeDirectory: String?, isSocket: (String) -> Bool) -> [String] {
        var addresses = known.compactMap { $0.flatMap(withoutAutolaunch) }
        if let runtimeDirectory, runtimeDirectory.hasPrefix("/"), isSocket(runtimeDirectory + "/bus") {
            addresses.append("unix:path=" + escaped(runtimeDirectory + "/bus"))
        }
        var seen: Set<String> = []
        return addresses.filter { seen.insert($0).inserted }
    }

    /// Returns the address without its "autolaunch:" entries. Returns `nil` if the address has no other entry. An address is a
    /// list of alternatives.
    package static func withoutAutolaunch(_ address: String) -> String? {
        let entries = address.split(separator: ";").filter { !$0.hasPrefix("autolaunch:") }
        return entries.isEmpty ? nil : entries.joined(separator: ";")
    }

    /// Returns `true` if two addresses belong to the same bus. An address may contain the id of the bus.
    ///
    /// - Parameter guid: the id of the bus at the second address, or `nil` if it is unknown.
    package static func isSame(_ one: String, _ other: String, guid: String?) -> Bool {
        func parts(_ address: String) -> [[Substring]] {
            address.split(separator: ";").map { $0.split(separator: ",").filter { !$0.hasPrefix("guid=") } }
        }
        return parts(one) == parts(other) || guid.map { one.contains("guid=\($0)") } ?? false
    }

    /// Returns the path in the form that D-Bus addresses require. Most bytes are escaped as %hh.
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
