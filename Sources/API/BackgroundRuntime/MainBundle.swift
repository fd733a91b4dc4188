import CCoreFoundation
import Foundation

/// Teaches Foundation who this app is. On Linux it finds a property list in a bundle's folder alone, which an executable of SwiftPM does not have:
/// `Bundle.main.bundleIdentifier` is `nil` there, and code for iOS unwraps it.
///
/// The list that Foundation has of such a program is empty and can be added to, by the functions of CoreFoundation that it is made with. What a
/// real bundle says stays.
enum MainBundle {
    static func teach(_ manifest: AppManifest) {
        guard let bundle = CFBundleGetMainBundle(), let list = CFBundleGetInfoDictionary(bundle) else { return }
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
            CFDictionarySetValue(list, UnsafeRawPointer(key), UnsafeRawPointer(value))
            CFRelease(UnsafeRawPointer(key))
            CFRelease(UnsafeRawPointer(value))
        }
    }

    private static let mark = "BackgroundRuntimeIsTeacher"

    private static func string(_ text: String) -> OpaquePointer? { CFStringCreateWithCString(nil, text, CCF_ENCODING_UTF8) }
}
