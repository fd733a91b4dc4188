import Foundation
import Glibc

/// A unit file that a user manager reads for the service of an app: the file of the service, or a drop-in file.
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

        /// The path that a condition of the service requires, or `nil` for any other setting.
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

    /// The first path that a condition of the service requires and that does not exist.
    var missingPath: String? { settings.lazy.compactMap(\.neededPath).first { access($0, F_OK) != 0 } }

    /// The first line that prevents, or may prevent, the start of the program. `nil` if no line prevents the start.
    ///
    /// A condition on a path is accepted if the path exists. For all other conditions it is unknown whether they will be met at a
    /// later time.
    var obstacle: String? {
        settings.first { setting in
            if isAdded, setting.name == "ExecStart" { return true }
            if let path = setting.neededPath { return access(path, F_OK) != 0 }
            return setting.isCondition
        }?.line
    }
}
