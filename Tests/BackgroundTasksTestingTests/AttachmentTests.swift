import BackgroundTasks
import BackgroundTasksTesting
import Foundation
import Testing
import UserNotifications

/// Files of notifications: what is taken, what is refused, and that a copy is shown.
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

    /// A theme's name, a file, and one that is not there: what the app gave is what it is told.
    @Test func aSoundIsOfTheThemeOrOfAFile() async throws {
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

    @Test func aCopyIsShown() async throws {
        let original = try file("hours.png", Self.pixel)
        try await TestDriver.run(permitting: []) { driver in
            let attachment = try UNNotificationAttachment(identifier: "hours", url: original)
            #expect(attachment.type == "public.png")
            try await self.add(attachment)
            // What happens to the original changes nothing, and it is the app's own.
            #expect(try Data(contentsOf: original) == Self.pixel)
            try FileManager.default.removeItem(at: original)
            try await driver.advance(by: .seconds(1))
            let shown = try #require(driver.notifications.shown.first)
            let delivered = try #require(await UNUserNotificationCenter.current().deliveredNotifications().first)
            let copy = try #require(delivered.request.content.attachments.first)
            #expect((copy.identifier, copy.type) == ("hours", "public.png"))
            #expect(try Data(contentsOf: copy.url) == Self.pixel)
            #expect(shown.picture == copy.url.path)
            // A file that is gone is an error, and nothing is told.
            await #expect { try await self.add(attachment) } throws: {
                ($0 as? UNError)?.code == .attachmentInvalidURL
            }
        }
    }

    @Test(arguments: [
        ("a.png", "no picture", UNError.Code.attachmentCorrupt), ("a.txt", "words", .attachmentUnrecognizedType),
        ("a.mp3", "", .attachmentCorrupt), ("a", "", .attachmentUnrecognizedType), ("a.jpg", "\u{89}PNG", .attachmentCorrupt),
    ]) func whatIsNoPictureIsRefused(_ name: String, _ content: String, _ code: UNError.Code) throws {
        let url = try file(name, Data(content.utf8))
        #expect { try UNNotificationAttachment(identifier: "", url: url) } throws: { ($0 as? UNError)?.code == code }
    }

    @Test func whatCannotBeTakenIsSaid() throws {
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
        // By what it is, whatever its name says.
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
