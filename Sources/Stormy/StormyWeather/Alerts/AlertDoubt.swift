import Foundation

/// The kind of a part of a warning that Stormy cannot use as the service wrote it. The warning is still used, and the user is
/// shown a message.
package enum AlertDoubt: String, Sendable, Hashable, Codable, CaseIterable {
    /// The severity cannot be read, or an update does not contain the severity.
    case severity
    /// A time in the warning cannot be read.
    case time
    /// The end of the warning is too far in the future.
    case end

    fileprivate var sentence: String {
        switch self {
        case .severity: "warnings have no severity that Stormy can read, so Stormy uses their earlier severity, or \"severe\""
        case .time: "warnings have times that Stormy cannot read, and may be valid for longer than Stormy shows"
        case .end:
            "warnings last for more than \(Int(AlertInfo.longestDuration / 86_400)) days, so Stormy does not use their end"
        }
    }
}

extension AlertInfo {
    mutating func doubt(_ doubt: AlertDoubt) {
        if doubts?.contains(doubt) != true { doubts = (doubts ?? []) + [doubt] }
    }
}

extension AlertMessage {
    /// Returns sentences about the parts of messages that Stormy cannot use unchanged, one sentence for each kind of part.
    package static func doubts(in messages: [AlertMessage]) -> [String] {
        AlertDoubt.allCases.compactMap { doubt in
            let count = messages.count { message in message.infos.contains { $0.doubts?.contains(doubt) ?? false } }
            return count == 0 ? nil : "\(count) of \(messages.count) \(doubt.sentence)"
        }
    }

    /// `true` if a polygon has edges whose direction around the Earth is not clear.
    package var hasAmbiguousShapes: Bool {
        infos.contains { info in info.areas.contains { $0.polygons.contains(where: AlertArea.isAmbiguous) } }
    }

    // MARK: Severity

    /// Returns the messages, with known severities if possible. If the severity of a message is unknown, the severity of an
    /// earlier message is used. Without the earlier severity, an update with an unreadable severity would end a warning.
    ///
    /// Earlier messages are the messages that a message refers to, the earlier messages of its document, and the earlier version
    /// of the message itself. Only warnings of the same kind are compared.
    ///
    /// - Parameter before: the messages that were known before.
    package static func keepingSeverities(_ current: [AlertMessage], before: [AlertMessage]) -> [AlertMessage] {
        guard current.contains(where: \.lacksSeverity) else { return current }
        var (kept, known) = (current, before)
        // The order is ascending by time, because an update may refer to an earlier update whose severity is also unknown.
        for index in current.indices.sorted(by: { (current[$0].sent, $0) < (current[$1].sent, $1) }) {
            kept[index].adoptSeverities(of: known)
            known.append(kept[index])
        }
        return kept
    }

    private var lacksSeverity: Bool { infos.contains(where: \.lacksSeverity) }

    private mutating func adoptSeverities(of known: [AlertMessage]) {
        guard lacksSeverity else { return }
        let names = Set(references + [identifier])
        let earlier = known.filter { names.contains($0.identifier) || link != nil && $0.link == link }.flatMap(\.infos)
        for index in infos.indices where infos[index].lacksSeverity {
            let severities = earlier.filter { $0.isSameKind(as: infos[index]) }.compactMap(\.severity)
            guard let severity = severities.max(by: { $0.rank < $1.rank }) else { continue }
            infos[index].severity = severity
            infos[index].doubt(.severity)
        }
    }
}

extension AlertInfo {
    fileprivate var lacksSeverity: Bool { noDanger == nil && (severity == nil || doubts?.contains(.severity) ?? false) }

    fileprivate func isSameKind(as other: AlertInfo) -> Bool {
        hazard == other.hazard || hazard.isUnclassified || other.hazard.isUnclassified
    }
}
