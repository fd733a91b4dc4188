/// Decides which addresses of the session bus to try. Has no side effects.
package enum SessionBusAddress {
    /// Returns the addresses to try, in this order. If the list is empty, do not connect: GLib without an address would start another bus
    /// through X11 ("autolaunch"), which no other program uses.
    ///
    /// - Parameters:
    ///   - known: the address from the caller, the address of the connection before, and the address from this process's start
    ///     environment. The first may belong to a bus that existed for one command.
    ///   - runtimeDirectory: the process's XDG_RUNTIME_DIR.
    ///   - isSocket: returns `true` if a path is a socket.
    package static func candidates(known: [String?], runtimeDirectory: String?, isSocket: (String) -> Bool) -> [String] {
        var addresses = known.compactMap { $0.flatMap(withoutAutolaunch) }
        if let runtimeDirectory, runtimeDirectory.hasPrefix("/"), isSocket(runtimeDirectory + "/bus") {
            addresses.append("unix:path=" + escaped(runtimeDirectory + "/bus"))
        }
        var seen: Set<String> = []
        return addresses.filter { seen.insert($0).inserted }
    }

    /// Returns the address without "autolaunch:" entries; an address is a list of alternatives. `nil` if no entry is left.
    package static func withoutAutolaunch(_ address: String) -> String? {
        let entries = address.split(separator: ";").filter { !$0.hasPrefix("autolaunch:") }
        return entries.isEmpty ? nil : entries.joined(separator: ";")
    }

    /// Returns `true` if two addresses belong to the same bus. An address may contain the bus's id or leave it out.
    ///
    /// - Parameter guid: the id of the bus that the second address leads to; `nil` if it is unknown.
    package static func isSame(_ one: String, _ other: String, guid: String?) -> Bool {
        func parts(_ address: String) -> [[Substring]] {
            address.split(separator: ";").map { $0.split(separator: ",").filter { !$0.hasPrefix("guid=") } }
        }
        return parts(one) == parts(other) || guid.map { one.contains("guid=\($0)") } ?? false
    }

    /// Escapes a path: D-Bus addresses escape all but a few bytes as %hh.
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
