import Foundation
import ProcessSupport

/// Has Foundation write what was set in `UserDefaults`, of every suite. On Linux it writes when `synchronize()` is called, and an app for iOS never calls it: a
/// launch's defaults would go with its process.
///
/// `UserDefaults.standard.synchronize()` makes the defaults where nobody has asked for them, 3 ms of every wake, and writes no suite but its own. The function of
/// CoreFoundation behind it writes every set that is in use when it is asked for one that is not: without any 0.1 ms once, then 3 µs.
enum DefaultsWriting {
    /// Nothing where nothing was set.
    static func write() {
        guard let none = makeString(nil, "of no application", 0x0800_0100) else { return }
        _ = synchronize(none)
        release(none)
    }

    /// From now on also when this process exits.
    static func writeAtExit() { ProcessExit.onExit { DefaultsWriting.write() } }
}

// Part of Foundation's library on Linux, and in none of its modules.
@_silgen_name("CFPreferencesAppSynchronize") private func synchronize(_ application: OpaquePointer) -> Bool
/// The encoding is UTF-8's number.
@_silgen_name("CFStringCreateWithCString")
private func makeString(_ allocator: OpaquePointer?, _ text: UnsafePointer<CChar>, _ encoding: UInt32) -> OpaquePointer?
@_silgen_name("CFRelease") private func release(_ object: OpaquePointer)
