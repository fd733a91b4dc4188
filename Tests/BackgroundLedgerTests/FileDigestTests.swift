import Spool
import Foundation
import Testing
import TransferMachines

@testable import BackgroundLedger

@Suite struct RunningDigestTests {
    /// The expected digests are the examples of FIPS 180-4.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ])
    func `SHA-256 digests of known texts have the documented values`(_ text: String, _ expected: String) {
        #expect(FileDigest.sha256(of: Data(text.utf8)) == expected)
    }

    @Test func `a digest does not depend on the parts, and can be read before its end`() {
        let bytes = Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
        for cut in 0...bytes.count {
            var digest = RunningDigest()
            bytes[..<cut].withUnsafeBytes { digest.update($0) }
            #expect(digest.hex == FileDigest.sha256(of: Data(bytes[..<cut])))
            bytes[cut...].withUnsafeBytes { digest.update($0) }
            #expect(digest.hex == FileDigest.sha256(of: Data(bytes)))
        }
    }

    @Test func `a copy of a running digest does not depend on the original`() {
        var one = RunningDigest()
        Array("ab".utf8).withUnsafeBytes { one.update($0) }
        var other = one
        Array("c".utf8).withUnsafeBytes { one.update($0) }
        Array("d".utf8).withUnsafeBytes { other.update($0) }
        #expect(one.hex == FileDigest.sha256(of: Data("abc".utf8)))
        #expect(other.hex == FileDigest.sha256(of: Data("abd".utf8)))
    }

    /// The expected digests are the examples of FIPS 180-4 and RFC 1321 for "abc".
    @Test func `digests of abc have the documented values for every algorithm`() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("abc-" + UUID().uuidString)
        try Data("abc".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        func hex(_ algorithm: RequiredDigest.Algorithm) -> String {
            var digest = RunningDigest(algorithm)
            Array("abc".utf8).withUnsafeBytes { digest.update($0) }
            return digest.hex
        }
        #expect(hex(.sha256) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            hex(.sha512) == "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f")
        #expect(hex(.md5) == "900150983cd24fb0d6963f7d28e17f72")
        #expect(FileDigest.sha1(of: file) == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(FileDigest.sha1(of: file.appendingPathComponent("gone")) == "")
    }

    /// The expected codes are case 2 of RFC 4231, and the code of an empty text with an empty key.
    @Test(arguments: [
        ("Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ("", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ])
    func `HMAC-SHA-256 codes of known texts have the documented values`(_ key: String, _ text: String, _ expected: String) {
        let code = CryptoHashing().hmacSHA256(Data(text.utf8), key: Data(key.utf8))
        #expect(code.map { String(format: "%02x", $0) }.joined() == expected)
    }

    /// The expected code is case 6 of RFC 4231.
    @Test func `HMAC-SHA-256 accepts a key that is longer than a block`() {
        let code = CryptoHashing().hmacSHA256(
            Data("Test Using Larger Than Block-Size Key - Hash Key First".utf8), key: Data(repeating: 0xaa, count: 131))
        #expect(
            code.map { String(format: "%02x", $0) }.joined()
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }
}
