import Foundation

extension UUID {
    /// Returns a random UUID (version 4) from the kernel's random numbers.
    ///
    /// `UUID()` of Foundation opens /dev/urandom. If the file cannot be opened, for example because too many files are open,
    /// `UUID()` returns zeros. Two files or two uploads would then get the same name.
    package static func random() -> UUID {
        var generator = SystemRandomNumberGenerator()
        // The bits of the version and of the variant (RFC 9562 §5.4).
        let high = generator.next() & ~0xF000 | 0x4000
        let low = generator.next() & (~0 >> 2) | 1 << 63
        return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
