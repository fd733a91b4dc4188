import BackgroundNotices
import CLibnotify
import Foundation

/// One notification in the form that the portal takes.
struct PortalNotification {
    private let portal: NotificationPortal
    private let notice: Notice
    private let picture: [UInt8]?

    init(_ notice: Notice, _ pixels: NoticePixels?, for portal: NotificationPortal) {
        (self.portal, self.notice) = (portal, notice)
        // The portal drops an icon that is not as wide as it is high.
        picture = pixels?.squared.png
    }

    /// - Parameters:
    ///   - name: what the portal calls it.
    ///   - tell: as of every call. Of an answer follows that the portal has it; that it is on the screen nobody says.
    func send(
        as name: String, on connection: OpaquePointer, tell: @escaping (_ outcome: PortalCall.Outcome, _ wasLate: Bool) -> Void
    ) {
        let files = g_unix_fd_list_new()
        defer { g_object_unref(UnsafeMutableRawPointer(files)) }
        var parameters: [OpaquePointer?] = [g_variant_new_string(name), fields(files)]
        PortalCall.send(
            "AddNotification", g_variant_new_tuple(&parameters, 2), with: files, on: connection, mayStart: true, tell: tell)
    }

    private func fields(_ files: UnsafeMutablePointer<GUnixFDList>?) -> OpaquePointer? {
        var fields: [(String, OpaquePointer?)] = [
            ("title", g_variant_new_string(NoticeText.title(notice.title, fallback: notice.appName))),
            // A plain body: the portal reads markup in a field of its own.
            (
                "body",
                g_variant_new_string(
                    NoticeText.body(notice.body(ofServer: portal.description.label, advertisesButtons: true), isMarkup: false))
            ),
            ("priority", g_variant_new_string(priority)),
            ("buttons", buttons),
        ]
        if notice.actions.contains(where: { $0.key == "default" }) {
            fields.append(("default-action", g_variant_new_string(PortalName.action(ofKey: "default"))))
        }
        if let icon = icon(files) { fields.append(("icon", icon)) }
        if portal.hasMedia {
            fields.append(("sound", sound(files)))
            var hint: [OpaquePointer?] = [g_variant_new_string(notice.isQuiet ? "tray" : "show-as-new")]
            fields.append(("display-hint", array("s", &hint)))
            if let category { fields.append(("category", g_variant_new_string(category))) }
        }
        return dictionary(fields)
    }

    /// Source of the words: org.freedesktop.portal.Notification. What is time-sensitive stays on the screen with a server, and is "high" here.
    private var priority: String {
        switch notice.urgency {
        case .low: "low"
        case .normal: notice.isPersistent ? "high" : "normal"
        case .critical: "urgent"
        }
    }

    /// A field to type into is part of a category.
    private var category: String? {
        let wanted = reply == nil ? notice.category : "im.received"
        return wanted.flatMap { portal.categories.contains($0) ? $0 : nil }
    }

    /// One field at most. Where there are none, such a button would send nothing, and is not offered.
    private var reply: NoticeAction? { portal.hasReplies ? notice.actions.first { $0.field != nil } : nil }

    private var buttons: OpaquePointer? {
        var buttons: [OpaquePointer?] = notice.actions.filter { action in
            action.key != "default" && !action.key.isEmpty && (action.field == nil || action == reply)
        }.map { action in
            let label = NoticeText.withoutControls(action.label)
            var fields: [(String, OpaquePointer?)] = [
                ("label", g_variant_new_string(label.isEmpty ? action.key : label)),
                ("action", g_variant_new_string(PortalName.action(ofKey: action.key))),
            ]
            if action.field != nil { fields.append(("purpose", g_variant_new_string(NotificationPortal.replyPurpose))) }
            return dictionary(fields)
        }
        return array("a{sv}", &buttons)
    }

    /// A file goes by itself: the portal sees no path of a sandbox.
    private func sound(_ files: UnsafeMutablePointer<GUnixFDList>?) -> OpaquePointer? {
        if notice.isQuiet || notice.soundName == nil { return g_variant_new_string("silent") }
        let file = notice.soundFile.flatMap { Self.content(ofSound: $0) }.flatMap { sealed($0, files) }
        return file ?? g_variant_new_string("default")
    }

    /// Bytes of a sound that is played with a notification, at most. Source: the limit of Apple's attachments, "audio".
    private static let longestSound = 5_000_000

    private static func content(ofSound path: String) -> [UInt8]? {
        // What is no file, a pipe say, could be waited for without end.
        let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
        guard type == .typeRegular, let file = try? FileHandle(forReadingFrom: URL(fileURLWithPath: path)),
            let data = try? file.read(upToCount: longestSound + 1), !data.isEmpty, data.count <= longestSound
        else { return nil }
        return Array(data)
    }

    /// The picture, else the app's icon where a theme has it. Source of both forms: the interface; version 2 takes no bytes.
    private func icon(_ files: UnsafeMutablePointer<GUnixFDList>?) -> OpaquePointer? {
        if let picture { return portal.hasMedia ? sealed(picture, files) : boxed("bytes", bytes(picture)) }
        guard let name = InstalledIcon.name(notice.iconName), !name.hasPrefix("/") else { return nil }
        var names: [OpaquePointer?] = [g_variant_new_string(name)]
        return boxed("themed", array("s", &names))
    }

    private func sealed(_ content: [UInt8], _ files: UnsafeMutablePointer<GUnixFDList>?) -> OpaquePointer? {
        guard let file = SealedFile(content) else { return nil }
        // The list keeps a copy of the descriptor.
        let index = g_unix_fd_list_append(files, file.descriptor, nil)
        return index < 0 ? nil : boxed("file-descriptor", g_variant_new_handle(index))
    }

    // MARK: Values

    private func boxed(_ kind: String, _ value: OpaquePointer?) -> OpaquePointer? {
        var parts: [OpaquePointer?] = [g_variant_new_string(kind), g_variant_new_variant(value)]
        return g_variant_new_tuple(&parts, 2)
    }

    private func bytes(_ content: [UInt8]) -> OpaquePointer? {
        let held = content.withUnsafeBytes { g_bytes_new($0.baseAddress, gsize($0.count)) }
        defer { g_bytes_unref(held) }
        let type = g_variant_type_new("ay")
        defer { g_variant_type_free(type) }
        return g_variant_new_from_bytes(type, held, 1)
    }

    private func dictionary(_ fields: [(String, OpaquePointer?)]) -> OpaquePointer? {
        var entries: [OpaquePointer?] = fields.map { key, value in
            g_variant_new_dict_entry(g_variant_new_string(key), g_variant_new_variant(value))
        }
        return array("{sv}", &entries)
    }

    private func array(_ type: String, _ children: inout [OpaquePointer?]) -> OpaquePointer? {
        let type = g_variant_type_new(type)
        defer { g_variant_type_free(type) }
        return g_variant_new_array(type, &children, gsize(children.count))
    }
}
