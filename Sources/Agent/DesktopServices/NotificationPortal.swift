import BackgroundNotices
import CLibnotify

/// What the desktop portal can do with notifications.
struct NotificationPortal: Equatable {
    static let busName = "org.freedesktop.portal.Desktop"
    static let path = "/org/freedesktop/portal/desktop"
    static let interface = "org.freedesktop.portal.Notification"

    let version: UInt32
    /// Purposes of buttons that the desktop behind it knows, such as "im.reply-with-text"; of version 2.
    let purposes: Set<String>
    /// Categories that it knows, such as "weather.warning.extreme"; of version 2.
    let categories: Set<String>

    /// A button can have a field to type into, and what is typed is told.
    var hasReplies: Bool { version >= 2 && purposes.contains(Self.replyPurpose) }
    static let replyPurpose = "im.reply-with-text"

    /// Sounds, hints and media by file descriptor.
    var hasMedia: Bool { version >= 2 }

    /// GTK's backend of that time ends itself when one that was replaced leaves: it is removed, and added anew. Source: measured,
    /// xdg-desktop-portal-gtk 1.14.1.
    var isBrokenByReplacing: Bool { version < 2 }

    /// Seconds after one of a name was added until the next call about it: a backend that has not heard its number from the server yet can neither
    /// replace nor remove it. Source: the same.
    var pause: Double { version < 2 ? 1 : 0 }

    /// As of a server. A portal always draws titles, bodies and buttons, where the desktop behind it does.
    var description: PresenterServer {
        PresenterServer(
            name: "xdg-desktop-portal", vendor: "", version: "\(version)", specificationVersion: "",
            capabilities: Set(["actions", "body"] + (hasMedia ? ["sound"] : []) + (hasReplies ? ["inline-reply"] : [])))
    }

    /// Asks the portal on `connection`.
    ///
    /// - Parameter tell: what it says, and whether that was late; `nil`: it is late so far.
    static func query(
        on connection: OpaquePointer, mayStart: Bool,
        tell: @escaping (_ portal: Result<NotificationPortal, PresenterFailure>?, _ wasLate: Bool) -> Void
    ) {
        property("version", on: connection, mayStart: mayStart) { answer, wasLate in
            switch answer {
            case nil: tell(nil, false)
            case .failure(let failure): tell(.failure(failure), wasLate)
            case .success(let boxed):
                let version = GVariantReading.type(of: boxed) == "u" ? g_variant_get_uint32(boxed) : 1
                guard version >= 2 else {
                    return tell(.success(NotificationPortal(version: version, purposes: [], categories: [])), wasLate)
                }
                property("SupportedOptions", on: connection, mayStart: mayStart) { options, isLate in
                    tell(options?.map { NotificationPortal(version: version, options: $0) }, wasLate || isLate)
                }
            }
        }
    }

    /// - Parameter tell: what it is; only of use until this returns.
    private static func property(
        _ name: String, on connection: OpaquePointer, mayStart: Bool,
        tell: @escaping (_ value: Result<OpaquePointer, PresenterFailure>?, _ wasLate: Bool) -> Void
    ) {
        var words = [g_variant_new_string(interface), g_variant_new_string(name)]
        let parameters = g_variant_new_tuple(&words, 2)
        PortalCall.send(
            "Get", parameters, of: "org.freedesktop.DBus.Properties", on: connection, mayStart: mayStart
        ) { outcome, wasLate in
            switch outcome {
            case .isLate: tell(nil, false)
            case .failed(let failure): tell(.failure(failure), wasLate)
            case .answered(let reply):
                guard GVariantReading.type(of: reply) == "(v)", let box = g_variant_get_child_value(reply, 0) else {
                    return tell(.failure(.refused("the portal's \(name) has an unexpected type")), wasLate)
                }
                defer { g_variant_unref(box) }
                guard let value = g_variant_get_variant(box) else {
                    return tell(.failure(.refused("the portal's \(name) is empty")), wasLate)
                }
                defer { g_variant_unref(value) }
                tell(.success(value), wasLate)
            }
        }
    }
}

extension NotificationPortal {
    /// Of version 2 and above.
    private init(version: UInt32, options: OpaquePointer) {
        func texts(_ key: String) -> Set<String> {
            Set(GVariantReading.value(key, ofType: "as", in: options) { GVariantReading.strings($0, ofType: "as") ?? [] } ?? [])
        }
        self.init(version: version, purposes: texts("button-purpose"), categories: texts("category"))
    }
}
