import CCoreFoundation
import Foundation

/// Sets the app's identity in Foundation. On Linux, Foundation finds a property list only in a bundle's folder, which an
/// executable of SwiftPM does not have. Without the identity, `Bundle.main.bundleIdentifier` is `nil`, and code for iOS that
/// unwraps this value would crash.
///
/// For a program without a bundle, Foundation's property list is empty. This type adds values to the property list with functions
/// of CoreFoundation. The list of a real bundle is not changed.
enum MainBundle {
    static func teach(_ manifest: AppManifest) {
        guard let bundle = CFBundleGetMainBundle(), let list = CFBundleGetInfoDictionary(bundle) else { return }
        // Only the list of a program without a bundle is changed, because the list of a real bundle may be immutable.
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
