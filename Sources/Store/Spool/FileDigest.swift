import CLibcrypto
import CLinux
import Foundation
import ProcessSupport
import TransferMachines

/// Computes digests, which show whether sent and received bytes are equal. This type uses libcrypto.
package enum FileDigest {
    /// Returns the SHA-256 in hex and the size of a file. The file is read in pieces, so the memory use is constant.
    package static func sha256(of url: URL) throws(Snapshot.Failure) -> (digest: String, byteCount: Int64) {
        let path = url.path
        let descriptor = clinux_open(path, O_RDONLY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw .unreadable(path, reason: String(cString: strerror(errno))) }
        defer { close(descriptor) }
        return try sha256(ofOpenFile: descriptor, path: path)
    }

    static func sha256(ofOpenFile descriptor: Int32, path: String) throws(Snapshot.Failure) -> (digest: String, byteCount: Int64)
    {
        var digest = RunningDigest()
        let byteCount = try read(descriptor, path: path, into: &digest)
        return (digest.hex, byteCount)
    }

    package static func sha256(of data: Data) -> String {
        var digest = RunningDigest()
        data.withUnsafeBytes { digest.update($0) }
        return digest.hex
    }

    /// Returns the SHA-1 of a file in hex, for protocols that identify a file by its SHA-1. If the file cannot be read, the
    /// result is empty.
    package static func sha1(of url: URL) -> String { Hex.text(Data(digest(of: url, .sha1))) }

    /// Returns the SHA-1 of data, for protocols in which the digest proves that the receiver has read the data. SHA-1 is
    /// sufficient, because the digest does not protect a secret.
    package static func sha1(of data: Data) -> Data {
        var digest = RunningDigest(.sha1)
        data.withUnsafeBytes { digest.update($0) }
        return Data(digest.bytes)
    }

    private static func digest(of url: URL, _ algorithm: RunningDigest.Algorithm) -> [UInt8] {
        let descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var digest = RunningDigest(algorithm)
        guard (try? read(descriptor, path: url.path, into: &digest)) != nil else { return [] }
        return digest.bytes
    }

    private static func read(_ descriptor: Int32, path: String, into digest: inout RunningDigest) throws(Snapshot.Failure)
        -> Int64
    {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw .unreadable(path, reason: String(cString: strerror(errno))) }
        let size = Int(information.st_size)
        // The buffer for a small file is one byte longer than the file. So the first read returns the complete file, and the
        // second read returns 0 bytes.
        var buffer = [UInt8](repeating: 0, count: min(1 << 18, max(0, size) + 1))
        var offset: off_t = 0
        while true {
            let count = FileFault.uninterrupted { pread(descriptor, &buffer, buffer.count, offset) }
            guard count >= 0 else { throw .unreadable(path, reason: String(cString: strerror(errno))) }
            if count == 0 { return Int64(offset) }
            buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += off_t(count)
        }
    }
}

/// The hash functions for modules without access to libcrypto.
package struct CryptoHashing: MessageHashing {
    package init() {}

    package func sha256(_ data: Data) -> Data {
        var digest = RunningDigest()
        data.withUnsafeBytes { digest.update($0) }
        return Data(digest.bytes)
    }

    package func hmacSHA256(_ data: Data, key: Data) -> Data {
        var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        _ = RunningDigest.isPrepared
        let isMade = key.withUnsafeBytes { key in
            data.withUnsafeBytes { data in
                HMAC(
                    EVP_sha256(), key.baseAddress, Int32(key.count), data.bindMemory(to: UInt8.self).baseAddress, data.count,
                    &code, &length) != nil
            }
        }
        precondition(isMade, "libcrypto cannot compute an HMAC with SHA-256")
        return Data(code[..<Int(length)])
    }
}

/// A digest that is computed while bytes arrive. This type is a value type, so bytes can be added to a copy without a change of
/// the original.
package struct RunningDigest: Sendable {
    /// Initializes libcrypto without its exit handler, because an app may call `exit` at any time, and the handler would free
    /// data that other threads use.
    fileprivate static let isPrepared = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    enum Algorithm {
        case sha1, sha256, sha512, md5

        fileprivate var function: OpaquePointer? {
            switch self {
            case .sha1: EVP_sha1()
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            case .md5: EVP_md5()
            }
        }
    }

    private var context: Context

    /// Creates a SHA-256 digest.
    package init() { self.init(Algorithm.sha256) }

    init(_ algorithm: Algorithm) { context = Context(algorithm) }

    /// Creates a digest with an algorithm that a server or the user requires.
    package init(_ algorithm: RequiredDigest.Algorithm) {
        switch algorithm {
        case .sha256: self.init(Algorithm.sha256)
        case .sha512: self.init(Algorithm.sha512)
        case .md5: self.init(Algorithm.md5)
        }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if !isKnownUniquelyReferenced(&context) { context = Context(copyOf: context) }
        context.update(bytes)
    }

    /// Adds zero bytes, for a hole in a sparse file.
    mutating func update(zeros count: Int) {
        guard count > 0 else { return }
        let zeros = [UInt8](repeating: 0, count: min(count, 1 << 18))
        var left = count
        while left > 0 {
            zeros.withUnsafeBytes { update(UnsafeRawBufferPointer(rebasing: $0[..<min(left, zeros.count)])) }
            left -= min(left, zeros.count)
        }
    }

    /// The digest of the bytes that were added. The digest is empty if the system's libcrypto does not support the algorithm, for
    /// example MD5 or SHA-1 in FIPS mode.
    package var bytes: [UInt8] { Context(copyOf: context).finish() }

    /// The digest of the bytes that were added, in hex.
    package var hex: String { Hex.text(Data(bytes)) }

    /// libcrypto's state of one digest.
    // Sendable is unchecked, because only an owner with the only reference changes the state.
    private final class Context: @unchecked Sendable {
        private let state: OpaquePointer
        private let isKnown: Bool

        init(_ algorithm: Algorithm) {
            state = Self.empty()
            isKnown = EVP_DigestInit_ex(state, algorithm.function, nil) == 1
            precondition(isKnown || algorithm != .sha256, "libcrypto cannot compute SHA-256")
        }

        init(copyOf other: Context) {
            state = Self.empty()
            isKnown = other.isKnown && EVP_MD_CTX_copy_ex(state, other.state) == 1
            precondition(isKnown == other.isKnown, "no memory is left for a digest")
        }

        deinit { EVP_MD_CTX_free(state) }

        func update(_ bytes: UnsafeRawBufferPointer) {
            if isKnown { EVP_DigestUpdate(state, bytes.baseAddress, bytes.count) }
        }

        /// Returns the digest. No bytes can be added after this call.
        func finish() -> [UInt8] {
            guard isKnown else { return [] }
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var length: UInt32 = 0
            guard EVP_DigestFinal_ex(state, &bytes, &length) == 1 else { return [] }
            return Array(bytes[..<Int(length)])
        }

        private static func empty() -> OpaquePointer {
            guard RunningDigest.isPrepared, let state = EVP_MD_CTX_new() else { fatalError("no memory is left for a digest") }
            return state
        }
    }
}
