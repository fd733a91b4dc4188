import BackgroundTasks

/// The capabilities of this desktop, as `doctor` prints them.
package struct GuaranteesReport: Encodable {
    /// A line of the report.
    package struct Row {
        /// A description of the capability for the user.
        package let title: String
        /// The character that shows whether this desktop has the capability.
        package let mark: String
        package let verdict: String
        package let reason: String
        package let help: String?
    }

    package static let heading = "Capabilities of this desktop"

    private let guarantees: BackgroundGuarantees

    package init(_ guarantees: BackgroundGuarantees) { self.guarantees = guarantees }

    package var rows: [Row] {
        guarantees.all.map { guarantee in
            let (mark, verdict) = Self.words(guarantee.verdict)
            return Row(
                title: Self.title(guarantee.name), mark: mark, verdict: verdict, reason: guarantee.reason, help: guarantee.help)
        }
    }

    /// The lines for a terminal. A desktop without a capability is not an error, so no line is highlighted.
    var lines: [String] {
        [Self.heading + ":"]
            + rows.flatMap { row in
                ["\(row.mark) \(row.title): \(row.verdict). \(row.reason)"] + (row.help.map { ["    \($0)"] } ?? [])
            }
    }

    private static func title(_ name: BackgroundGuarantees.Guarantee.Name) -> String {
        switch name {
        case .survivesLogout: "work continues after a logout"
        case .survivesReboot: "work continues after a reboot"
        case .survivesForceQuit: "work continues after a force quit"
        case .wakesSystem: "wakes the machine from sleep"
        case .networkIsKnown: "detects whether there is a network"
        case .meteredIsKnown: "detects whether the network is metered"
        case .powerIsKnown: "detects external power"
        case .buttonsAreLive: "receives button presses of notifications"
        }
    }

    private static func words(_ verdict: BackgroundGuarantees.Guarantee.Verdict) -> (mark: String, words: String) {
        switch verdict {
        case .kept: ("✓", "yes")
        case .keptFromNextLogin: ("~", "yes, from the next login on")
        case .notKept: ("-", "no")
        case .unknown: ("?", "not known yet")
        }
    }

    // MARK: JSON

    private struct EncodedRow: Encodable {
        let guarantee: BackgroundGuarantees.Guarantee

        private enum CodingKeys: CodingKey { case name, kept, verdict, reason, help }

        /// Encodes a capability. The value of `kept` is `null` if the state is not known, and `false` if the capability exists
        /// only after the next login.
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(guarantee.name, forKey: .name)
            try container.encode(OrNull(guarantee.verdict == .unknown ? nil : guarantee.isKept), forKey: .kept)
            try container.encode(guarantee.verdict, forKey: .verdict)
            try container.encode(guarantee.reason, forKey: .reason)
            try container.encode(OrNull(guarantee.help), forKey: .help)
        }
    }

    /// Encodes the report as an array of `{name, kept, verdict, reason, help}`.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for guarantee in guarantees.all { try container.encode(EncodedRow(guarantee: guarantee)) }
    }
}

/// A row of the output of `doctor --json`: a finding, or the capabilities of this desktop.
enum DoctorRow: Encodable {
    case finding(DoctorFinding)
    /// The capabilities of this desktop. The row has all fields of the other rows, so that scripts can read every row in the same
    /// way. The row also has the field `guarantees`. The status is always "ok", because a desktop without a capability is not an
    /// error.
    case guarantees(BackgroundGuarantees)

    private enum CodingKeys: CodingKey { case guarantees }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .finding(let finding): try finding.encode(to: encoder)
        case .guarantees(let guarantees):
            let kept = guarantees.all.count(where: \.isKept)
            try DoctorFinding("guarantees", .ok, "This desktop has \(kept) of \(guarantees.all.count) capabilities.")
                .encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(GuaranteesReport(guarantees), forKey: .guarantees)
        }
    }
}
