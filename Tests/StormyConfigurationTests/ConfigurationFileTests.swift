import Foundation
import StormyConfiguration
import Testing

@Suite final class ConfigurationFileTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "stormy-configuration-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func file(_ content: Data, mode: Int) throws -> String {
        let path = folder.appending(path: "config.toml").path
        #expect(FileManager.default.createFile(atPath: path, contents: content))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    private func message(_ path: String) -> String? {
        do throws(ConfigurationError) {
            _ = try Configuration.load(path: path)
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `a missing file gives the defaults`() throws {
        #expect(try Configuration.load(path: folder.appending(path: "none/config.toml").path) == Configuration())
    }

    @Test(arguments: [
        ("password = \"x\"", 4), ("token = \"x\"", 4),
    ])
    func `a credential in a file that other users can read is an error`(_ line: String, _ number: Int) throws {
        let text = Data("[upload.destinations.home]\nkind = 'put'\nurl = 'https://a'\n\(line)\n".utf8)
        for mode in [0o644, 0o640, 0o604] {
            let path = try file(text, mode: mode)
            let words = try #require(message(path))
            #expect(words.hasPrefix("\(path):\(number):1: "))
            #expect(words.hasSuffix("run: chmod 600 \(path)"))
        }
        #expect(message(try file(text, mode: 0o600)) == nil)
    }

    @Test func `other users may read a file with an S3 access key, which is not a secret`() throws {
        let text = "[upload.destinations.s3]\nkind = 's3'\nurl = 'https://a'\naccess_key = 'AKIA'\nsecret_key_file = 'x'\n"
        let path = try file(Data(text.utf8), mode: 0o644)
        #expect(try Configuration.load(path: path).upload.destinations["s3"]?.accessKey == "AKIA")
    }

    @Test(arguments: ["https://me:secret@example.org", "https://token@example.org"])
    func `user information in an address is a credential`(_ url: String) throws {
        let text = Data("[weather]\nbase_url = '\(url)'\n".utf8)
        let words = try #require(message(file(text, mode: 0o644)))
        #expect(words.contains("weather.base_url"))
        #expect(!words.contains("secret"))
        #expect(message(try file(text, mode: 0o600)) == nil)
    }

    @Test(.enabled(if: getuid() == 0, "only root can give files to another user"))
    func `a credential in a file of another user is refused`() throws {
        let path = try file(Data("[upload.destinations.home]\nkind = 'put'\nurl = 'https://a'\ntoken = 'x'\n".utf8), mode: 0o600)
        #expect(chown(path, 12_345, 12_345) == 0)
        #expect(try #require(message(path)).contains("belongs to another user"))
    }

    @Test(.enabled(if: getuid() == 0, "only root can give files to another user"))
    func `a file or folder of another user is refused`() throws {
        let text = Data("[upload.destinations.home]\nkind = 'put'\nurl = 'https://a'\npassword_file = 'x'\n".utf8)
        var path = try file(text, mode: 0o644)
        #expect(chown(path, 12_345, 12_345) == 0)
        #expect(message(path)?.contains("this file belongs to another user") == true)
        try FileManager.default.removeItem(atPath: path)
        path = try file(text, mode: 0o644)
        #expect(message(path) == nil)
        #expect(chown(folder.path, 12_345, 12_345) == 0)
        #expect(message(path)?.contains("\(folder.path) belongs to another user") == true)
    }

    /// The file must be protected, because Stormy sends passwords and photos to the URLs in the file.
    @Test func `a file that other users can change is refused`() throws {
        let text = Data("[upload.destinations.home]\nkind = 'put'\nurl = 'https://a'\npassword_file = 'x'\n".utf8)
        let path = try file(text, mode: 0o666)
        #expect(message(path)?.hasSuffix("other users can write to this file; run: chmod go-w \(path)") == true)
        // Some distributions give each user a separate group.
        #expect(message(try file(text, mode: 0o664)) == nil)
        if getuid() == 0 {
            #expect(chown(path, 0, 12_345) == 0)
            #expect(message(path)?.contains("other users can write") == true)
        }
        _ = try file(text, mode: 0o644)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
        #expect(message(path)?.contains("other users can write to \(folder.path);") == true)
        // The folder has the same permissions as /tmp.
        try FileManager.default.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: folder.path)
        #expect(message(path) == nil)
    }

    @Test func `a file without a credential may be readable by all users`() throws {
        let path = try file(
            Data("[upload.destinations.home]\nkind = 'put'\nurl = 'https://a'\npassword_file = 'x'\n".utf8), mode: 0o644)
        #expect(try Configuration.load(path: path).upload.destinations["home"]?.passwordFile == "x")
    }

    @Test func `a file that is not regular, not UTF-8 or larger than 1 MiB is an error`() throws {
        #expect(message(folder.path)?.contains("not a regular file") == true)
        #expect(message(try file(Data([0x61, 0xFF, 0xFE]), mode: 0o600))?.contains("UTF-8") == true)
        #expect(message(try file(Data(count: 1024 * 1024 + 1), mode: 0o600))?.contains("1 MiB") == true)
    }
}
