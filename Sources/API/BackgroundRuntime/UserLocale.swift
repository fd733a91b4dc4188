import Foundation
import ProcessSupport

/// The locale for the user's dates and times. Foundation on Linux does not read the locale from the environment. Without this
/// type, dates and times would have the American format ("12:00 PM") for every user.
package enum UserLocale {
    package static var current: Locale {
        ThisProcess.givenEnvironment.map(locale(in:)) ?? ofProcess
    }

    private static let ofProcess = locale(in: ProcessInfo.processInfo.environment)

    /// Returns the locale of an environment. The locale is the value of the first variable of `LC_ALL`, `LC_TIME` and `LANG` that
    /// is not empty (POSIX.1-2017, XBD 8.2). The value of this variable may contain a codeset and a modifier. `C` and `POSIX`
    /// select the 24-hour clock and English words.
    package static func locale(in environment: [String: String]) -> Locale {
        let name = name(of: "LC_TIME", in: environment)
        let isKnown = Locale(identifier: name).language.languageCode?.isISOLanguage == true
        return Locale(identifier: isKnown ? name : "en_GB")
    }

    /// Returns the region that decides the units of measurement, for example "US", or `nil` if the environment contains no
    /// region.
    package static func measurementRegion(in environment: [String: String] = ThisProcess.environment) -> String? {
        Locale(identifier: name(of: "LC_MEASUREMENT", in: environment)).region?.identifier
    }

    private static func name(of category: String, in environment: [String: String]) -> String {
        let value = ["LC_ALL", category, "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? "C"
        return String(value.prefix { $0 != "." && $0 != "@" })
    }
}

extension UserLocale {
    /// The languages that the user prefers, the most preferred first, as a value of `Accept-Language` (RFC 9110, 12.5.4).
    package static var acceptLanguage: String { acceptLanguage(in: ThisProcess.environment) }

    /// Returns the languages of an environment, as gettext determines them. The languages are the list in `LANGUAGE` (separated
    /// by colons), followed by the locale in the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set. If this locale is `C`,
    /// the list is ignored. The default is English.
    package static func acceptLanguage(in environment: [String: String]) -> String {
        let single = name(of: "LC_MESSAGES", in: environment)
        let listed = (environment["LANGUAGE"] ?? "").split(separator: ":").map(String.init)
        let isPlain = ["C", "POSIX"].contains(single)
        var tags: [String] = []
        for name in isPlain ? ["en"] : listed + [single] {
            let tag = String(name.prefix { $0 != "." && $0 != "@" }.replacing("_", with: "-"))
            guard Locale(identifier: tag).language.languageCode?.isISOLanguage == true else { continue }
            for tag in [tag, String(tag.prefix { $0 != "-" })] where !tags.contains(tag) { tags.append(tag) }
        }
        if tags.isEmpty { tags = ["en"] }
        return tags.prefix(9).enumerated().map { index, tag in index == 0 ? tag : "\(tag);q=0.\(10 - index)" }.joined(
            separator: ",")
    }
}
