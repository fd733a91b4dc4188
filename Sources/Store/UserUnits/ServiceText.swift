import Foundation
import Glibc

/// A file that a user manager reads for the service of an app: its own, or one that somebody added to it.
struct ServiceText {
    private struct Setting {
        let name: String
        let value: String
        let line: String

        init?(_ line: String) {
            guard let sign = line.firstIndex(of: "="), !line.hasPrefix("#"), !line.hasPrefix(";") else { return nil }
            name = line[..<sign].trimmingCharacters(in: .whitespaces)
            value = line[line.index(after: sign)...].trimmingCharacters(in: .whitespaces)
            self.line = line
        }

        /// A condition of the service's own kind, and the path that it asks for.
        var neededPath: String? {
            name == "ConditionPathExists" && value.hasPrefix("/") ? value.replacingOccurrences(of: "%%", with: "%") : nil
        }

        var isCondition: Bool { (name.hasPrefix("Condition") || name.hasPrefix("Assert")) && !value.isEmpty }
    }

    private let settings: [Setting]
    private let isAdded: Bool

    init(_ text: String, isAdded: Bool) {
        settings = text.split(separator: "\n").compactMap { Setting($0.trimmingCharacters(in: .whitespaces)) }
        self.isAdded = isAdded
    }

    /// What a condition asks to be there, and is not.
    var missingPath: String? { settings.lazy.compactMap(\.neededPath).first { access($0, F_OK) != 0 } }

    /// The first line by which the service does not start its program, or might not; `nil`: there is none.
    ///
    /// Of conditions only that of a file that is there is known to hold at a later moment.
    var obstacle: String? {
        settings.first { setting in
            if isAdded, setting.name == "ExecStart" { return true }
            if let path = setting.neededPath { return access(path, F_OK) != 0 }
            return setting.isCondition
        }?.line
    }
}
