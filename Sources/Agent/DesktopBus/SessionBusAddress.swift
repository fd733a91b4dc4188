/// Decides which addresses of the session bus to try. Pure.
package enum SessionBusAddress {
    /// The addresses to try, in this order. If it is empty, no attempt may be made: GLib without an address would start
    /// another bus through X11 ("autolaunch"), which no other program uses.
    ///
    /// - Parameters:
    ///   - known: told by the caller just now, of the connection before, and of the environment that this process was started with. The
    ///     first may have been of a bus that lived for one command.
    ///   - runtimeDirectory: the process's XDG_RUNTIME_DIR.
    ///   - isSocket: whether a socket lies at a path.
    package static func candidates(known: [String?], runtimeDirectory: String?, isSocket: (String) -> Bool) -> [String] {
        var addresses = known.compactMap { $0.flatMap(withoutAutolaunch) }
        if let runtimeDirectory, runtimeDirectory.hasPrefix("/"), isSocket(runtimeDirectory + "/bus") {
            addresses.append("unix:path=" + escaped(runtimeDirectory + "/bus"))
        }
        var seen: Set<String> = []
        return addresses.filter { seen.insert($0).inserted }
    }

    /// An address is a list of alternatives; every "autolaunch:" among them is dropped.
    package static func withoutAutolaunch(_ address: String) -> String? {
        let entries = address.split(separator: ";").filter { !$0.hasPrefix("autolaunch:") }
        return entries.isEmpty ? nil : entries.joined(separator: ";")
    }

    /// Whether two addresses are spellings of one bus: one may say its number, and one may not.
    ///
    /// - Parameter guid: of the bus that the second leads to; `nil`: not known.
    package static func isSame(_ one: String, _ other: String, guid: String?) -> Bool {
        func parts(_ address: String) -> [[Substring]] {
            address.split(separator: ";").map { $0.split(separator: ",").filter { !$0.hasPrefix("guid=") } }
        }
        return parts(one) == parts(other) || guid.map { one.contains("guid=\($0)") } ?? false
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
