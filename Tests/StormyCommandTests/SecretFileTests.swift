import Foundation
import Testing

@testable import StormyCommand

/// Tests files that contain a password, a token or a key.
@Suite final class SecretFileTests {
    private let path = FileManager.default.temporaryDirectory.appendingPathComponent("secret-" + UUID().uuidString).path

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private func write(_ content: Data) {
        #expect(FileManager.default.createFile(atPath: path, contents: content, attributes: [.posixPermissions: 0o600]))
    }

    @Test func `a secret of 64 KiB is accepted`() throws {
        write(Data(repeating: 0x61, count: 64 * 1024))
        #expect(try SecretFile(path).read().utf8.count == 64 * 1024)
    }

    @Test func `a larger file is not accepted as a secret`() {
        write(Data(repeating: 0x61, count: 5_000_000))
        #expect(throws: SecretFile.Trouble.tooLarge) { try SecretFile(path).read() }
    }

    @Test(.enabled(if: getuid() == 0, "only root can give files to another user"))
    func `a file of another user is not accepted as a secret`() {
        write(Data("hunter2\n".utf8))
        #expect(chown(path, 12_345, 12_345) == 0)
        #expect(throws: SecretFile.Trouble.ofAnotherUser) { try SecretFile(path).read() }
    }

    @Test func `a named pipe in the place of a secret does not block`() {
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: SecretFile.Trouble.notAFile) { try SecretFile(path).read() }
    }
}
