import BackgroundTasks
import BackgroundTasksTesting
import Foundation
import Testing
import UserNotifications

/// Tests of attachment files of notifications: accepted files, refused files, and the copy that is shown.
@Suite final class AttachmentTests: Sendable {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("attachments-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private static let pixel = Data(
        base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")!

    private func file(_ name: String, _ content: Data) throws -> URL {
        let url = folder.appendingPathComponent(name)
        try content.write(to: url)
        return url
    }

    private func add(_ attachment: UNNotificationAttachment) async throws {
        let content = UNMutableNotificationContent()
        (content.title, content.attachments) = ("Storm", [attachment])
        try await UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "storm", content: content, trigger: nil))
    }

    /// The app reads the sound that it set, even if the desktop plays another sound.
    @Test func `a sound is a theme sound or a file, and the default sound if the file is missing`() async throws {
        let ping = try file("ping.oga", Data("OggS".utf8)).path
        for (name, shown) in [
            ("bell", "bell"), (ping, ping), (ping + "x", "message-new-instant"), ("gone.caf", "message-new-instant"),
        ] {
            try await TestDriver.run(permitting: []) { driver in
                let content = UNMutableNotificationContent()
                (content.title, content.sound) = ("Storm", UNNotificationSound(named: UNNotificationSoundName(name)))
                try await UNUserNotificationCenter.current().add(
                    UNNotificationRequest(identifier: "storm", content: content, trigger: nil))
                try await driver.advance(by: .seconds(1))
                #expect(driver.notifications.shown.first?.sound == shown)
                let delivered = try #require(await UNUserNotificationCenter.current().deliveredNotifications().first)
                #expect(delivered.request.content.sound == content.sound)
            }
        }
    }

    @Test func `a notification shows a copy of the attached picture`() async throws {
        let original = try file("hours.png", Self.pixel)
        try await TestDriver.run(permitting: []) { driver in
            let attachment = try UNNotificationAttachment(identifier: "hours", url: original)
            #expect(attachment.type == "public.png")
            try await self.add(attachment)
            // The original file is not changed. The copy is shown even after the original file was removed.
            #expect(try Data(contentsOf: original) == Self.pixel)
            try FileManager.default.removeItem(at: original)
            try await driver.advance(by: .seconds(1))
            let shown = try #require(driver.notifications.shown.first)
            let delivered = try #require(await UNUserNotificationCenter.current().deliveredNotifications().first)
            let copy = try #require(delivered.request.content.attachments.first)
            #expect((copy.identifier, copy.type) == ("hours", "public.png"))
            #expect(try Data(contentsOf: copy.url) == Self.pixel)
            #expect(shown.picture == copy.url.path)
            // A missing file is an error.
            await #expect { try await self.add(attachment) } throws: {
                ($0 as? UNError)?.code == .attachmentInvalidURL
            }
        }
    }

    @Test(arguments: [
        ("a.png", "no picture", UNError.Code.attachmentCorrupt), ("a.txt", "words", .attachmentUnrecognizedType),
        ("a.mp3", "", .attachmentCorrupt), ("a", "", .attachmentUnrecognizedType), ("a.jpg", "\u{89}PNG", .attachmentCorrupt),
    ]) func `an invalid attachment file is refused`(_ name: String, _ content: String, _ code: UNError.Code) throws {
        let url = try file(name, Data(content.utf8))
        #expect { try UNNotificationAttachment(identifier: "", url: url) } throws: { ($0 as? UNError)?.code == code }
    }

    @Test func `an attachment is checked by its location, type and size`() throws {
        func code(_ url: URL, _ options: [AnyHashable: Any]? = nil) -> UNError.Code? {
            do {
                _ = try UNNotificationAttachment(identifier: "a", url: url, options: options)
                return nil
            } catch {
                #expect(!error.localizedDescription.isEmpty)
                return (error as? UNError)?.code
            }
        }
        #expect(code(folder.appendingPathComponent("nothing.png")) == .attachmentInvalidURL)
        #expect(code(folder) == .attachmentInvalidURL)
        #expect(code(URL(string: "https://example.org/a.png")!) == .attachmentInvalidURL)
        let pipe = folder.appendingPathComponent("pipe.png")
        mkfifo(pipe.path, 0o600)
        #expect(code(pipe) == .attachmentInvalidURL)
        // The type of a file follows from its content, and not from its name.
        #expect(try code(file("photo.jpg", Self.pixel)) == nil)
        #expect(try UNNotificationAttachment(identifier: "", url: file("photo", Self.pixel)).type == "public.png")
        #expect(
            try code(file("data", Data("x".utf8)), [UNNotificationAttachmentOptionsTypeHintKey: "public.jpeg"])
                == .attachmentCorrupt)
        let large = try file("large.png", Self.pixel)
        let handle = try FileHandle(forWritingTo: large)
        try handle.truncate(atOffset: 10_485_761)
        #expect(code(large) == .attachmentInvalidFileSize)
        try handle.truncate(atOffset: 10_485_760)
        #expect(code(large) == nil)
        let film = try file("film.mp4", Data([0, 0, 0, 24] + Array("ftypmp42".utf8)))
        #expect(try UNNotificationAttachment(identifier: "", url: film).type == "public.mpeg-4")
        let sound = try file("sound.wav", Data(Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WAVEfmt ".utf8)))
        #expect(try UNNotificationAttachment(identifier: "", url: sound).type == "com.microsoft.waveform-audio")
    }
}
