import Foundation
import Glibc
import Testing

@testable import StormyCommand

/// Tests that the file of the key `ca_file` is checked before it is used.
@Suite struct AuthorityFileTests {
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MAMCAQE=
        -----END CERTIFICATE-----

        """

    private static func trouble(_ text: String) -> AuthorityFile.Trouble? {
        do throws(AuthorityFile.Trouble) { try AuthorityFile.judge(Data(text.utf8)) } catch { return error }
        return nil
    }

    @Test func `files with certificates are accepted`() {
        let text = "Subject: home\n\n"
        #expect(Self.trouble(Self.certificate) == nil)
        #expect(Self.trouble(text + Self.certificate + text + Self.certificate) == nil)
        #expect(Self.trouble(Self.certificate.replacing("\n", with: "\r\n")) == nil)
        #expect(Self.trouble(Self.certificate.replacing("BEGIN CERT", with: "BEGIN TRUSTED CERT")) == nil)
    }

    @Test(arguments: [
        ("", AuthorityFile.Trouble.noCertificate), ("hello\n", .noCertificate), ("0\u{3}\u{2}", .notText),
        ("-----BEGIN PRIVATE KEY-----\nMAMCAQE=\n-----END PRIVATE KEY-----\n" + certificate, .privateKey),
        (certificate + "-----BEGIN RSA PRIVATE KEY-----\n", .privateKey),
        (certificate + "-----BEGIN ENCRYPTED PRIVATE KEY-----\n", .privateKey),
        ("-----BEGIN PKCS7-----\nMAMCAQE=\n-----END PKCS7-----\n", .noCertificate),
        ("-----BEGIN CERTIFICATE REQUEST-----\nMAMCAQE=\n-----END CERTIFICATE REQUEST-----\n", .noCertificate),
        (certificate + certificate.replacing("MAMC", with: "MA?C"), .damaged(position: 2)),
        (certificate.replacing("MAMCAQE=", with: "MIIDdzCC"), .damaged(position: 1)),
        (certificate.replacing("MAMCAQE=\n", with: ""), .damaged(position: 1)),
        (certificate.replacing("-----END CERTIFICATE-----", with: ""), .damaged(position: 1)),
        ("-----END CERTIFICATE-----\n", .damaged(position: 1)),
    ])
    func `a file that cannot be used is refused with its reason`(_ text: String, _ trouble: AuthorityFile.Trouble) {
        #expect(Self.trouble(text) == trouble)
    }

    @Test func `a path that is not a readable file is refused`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("authority-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func trouble(_ name: String) -> AuthorityFile.Trouble? {
            do throws(AuthorityFile.Trouble) { try AuthorityFile(name).check() } catch { return error }
            return nil
        }
        let file = folder.appendingPathComponent("ca.pem")
        try Data(Self.certificate.utf8).write(to: file)
        chmod(file.path, 0o644)
        #expect(trouble(file.path) == nil)
        chmod(file.path, 0o646)
        #expect(trouble(file.path) == .writableByOthers)
        #expect(trouble("ca.pem") == .notAbsolute)
        #expect(trouble(folder.path) == .notAFile)
        #expect(trouble(folder.path + "/none.pem") == .missing)
        #expect(trouble(file.path + "/none.pem") == .missing)
        let pipe = folder.appendingPathComponent("pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(trouble(pipe) == .notAFile)
        try Data(repeating: 0x41, count: (1 << 20) + 1).write(to: file)
        chmod(file.path, 0o644)
        #expect(trouble(file.path) == .tooLarge)
    }
}
