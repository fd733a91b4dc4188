import Foundation

/// Teaches Foundation who this app is. On Linux it finds a property list in a bundle's folder alone, which an executable of SwiftPM does not have:
/// `Bundle.main.bundleIdentifier` is `nil` there, and code for iOS unwraps it.
///
/// The list that Foundation has of such a program is empty and can be added to, by the functions of CoreFoundation that it is made with. What a
/// real bundle says stays.
enum MainBundle {
    static func teach(_ manifest: AppManifest) {
        guard let bundle = mainBundle(), let list = informationOfBundle(bundle) else { return }
        // Somebody else's list may be one that cannot be changed.
        let own = Bundle.main.infoDictionary ?? [:]
        guard own.isEmpty || own[mark] != nil else { return }
        let values = [
            "CFBundleIdentifier": manifest.appIdentifier, "CFBundleName": manifest.displayName,
            "CFBundleDisplayName": manifest.displayName, "CFBundleShortVersionString": manifest.version,
            "CFBundleVersion": manifest.version, mark: "yes",
        ]
        for (key, value) in values {
            guard let key = string(key), let value = string(value) else { return }
            setValue(list, key, value)
            release(key)
            release(value)
        }
    }

    private static let mark = "BackgroundRuntimeIsTeacher"

    private static func string(_ text: String) -> OpaquePointer? { makeString(nil, text, 0x0800_0100) }
}

// Part of Foundation's library on Linux, and in none of its modules.
@_silgen_name("CFBundleGetMainBundle") private func mainBundle() -> OpaquePointer?
@_silgen_name("CFBundleGetInfoDictionary") private func informationOfBundle(_ bundle: OpaquePointer) -> OpaquePointer?
@_silgen_name("CFDictionarySetValue")
private func setValue(_ dictionary: OpaquePointer, _ key: OpaquePointer, _ value: OpaquePointer)
/// The encoding is UTF-8's number.
@_silgen_name("CFStringCreateWithCString")
private func makeString(_ allocator: OpaquePointer?, _ text: UnsafePointer<CChar>, _ encoding: UInt32) -> OpaquePointer?
@_silgen_name("CFRelease") private func release(_ object: OpaquePointer)
