import BackgroundTasks

/// What this desktop keeps, as `doctor` says it.
package struct GuaranteesReport: Encodable {
    /// One line of it.
    package struct Row {
        /// What is kept, in a person's words.
        package let title: String
        /// How it stands: a mark and words.
        package let mark: String
        package let verdict: String
        package let reason: String
        package let help: String?
    }

    package static let heading = "What this desktop keeps"

    private let guarantees: BackgroundGuarantees

    package init(_ guarantees: BackgroundGuarantees) { self.guarantees = guarantees }

    package var rows: [Row] {
        guarantees.all.map { guarantee in
            let (mark, verdict) = Self.words(guarantee.verdict)
            return Row(
                title: Self.title(guarantee.name), mark: mark, verdict: verdict, reason: guarantee.reason, help: guarantee.help)
        }
    }

    /// For a terminal. A guarantee that is not kept is no fault: nothing is loud.
    var lines: [String] {
        [Self.heading + ":"]
            + rows.flatMap { row in
                ["\(row.mark) \(row.title): \(row.verdict). \(row.reason)"] + (row.help.map { ["    \($0)"] } ?? [])
            }
    }

    private static func title(_ name: BackgroundGuarantees.Guarantee.Name) -> String {
        switch name {
        case .survivesLogout: "survives a logout"
        case .survivesReboot: "survives a reboot"
        case .survivesForceQuit: "survives a force quit"
        case .wakesSystem: "wakes the machine from sleep"
        case .networkIsKnown: "knows whether there is a network"
        case .meteredIsKnown: "knows whether the network is metered"
        case .powerIsKnown: "knows whether there is external power"
        case .buttonsAreLive: "hears buttons of notifications"
        }
    }

    private static func words(_ verdict: BackgroundGuarantees.Guarantee.Verdict) -> (mark: String, words: String) {
        switch verdict {
        case .kept: ("✓", "yes")
        case .keptFromNextLogin: ("~", "from the next login on")
        case .notKept: ("-", "no")
        case .unknown: ("?", "not known yet")
        }
    }

    // MARK: JSON

    private struct EncodedRow: Encodable {
        let guarantee: BackgroundGuarantees.Guarantee

        private enum CodingKeys: CodingKey { case name, kept, verdict, reason, help }

        /// `kept` is `null` where nobody knows; what is kept from the next login on is not kept meanwhile.
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(guarantee.name, forKey: .name)
            try container.encode(OrNull(guarantee.verdict == .unknown ? nil : guarantee.isKept), forKey: .kept)
            try container.encode(guarantee.verdict, forKey: .verdict)
            try container.encode(guarantee.reason, forKey: .reason)
            try container.encode(OrNull(guarantee.help), forKey: .help)
        }
    }

    /// As rows of `{name, kept, verdict, reason, help}`.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for guarantee in guarantees.all { try container.encode(EncodedRow(guarantee: guarantee)) }
    }
}

/// A row of `doctor --json`.
enum DoctorRow: Encodable {
    case finding(DoctorFinding)
    /// A row like the others, as scripts read all of them, with the field `guarantees` besides. Its status is always "ok": what a desktop does
    /// not keep is no fault.
    case guarantees(BackgroundGuarantees)

    private enum CodingKeys: CodingKey { case guarantees }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .finding(let finding): try finding.encode(to: encoder)
        case .guarantees(let guarantees):
            let kept = guarantees.all.count(where: \.isKept)
            try DoctorFinding("guarantees", .ok, "This desktop keeps \(kept) of \(guarantees.all.count) guarantees.")
                .encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(GuaranteesReport(guarantees), forKey: .guarantees)
        }
    }
}
