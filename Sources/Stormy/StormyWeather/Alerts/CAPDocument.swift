import Foundation
import TransferMachines

/// Reads CAP 1.2 documents. Source of the rules: the OASIS standard, and the profiles of the DWD and of MET Norway.
package enum CAPDocument {
    /// Corners of all polygons of one document: more than any warning is drawn with.
    private static let mostCorners = 200_000

    /// - Returns: `nil`: a test, an exercise, a draft or an acknowledgement, which is never shown as real.
    /// - Throws: ``WeatherError``: no CAP, or one that says not who, when or what.
    package static func parse(_ data: Data) throws(WeatherError) -> AlertMessage? {
        guard data.count <= ServiceAnswer.maximumBytes else { throw .tooLarge(bytes: data.count) }
        guard let alert = AnswerXML.read(data), alert.name == "alert" else { throw .notCAP }
        return try message(alert)
    }

    static func message(_ alert: AnswerXML) throws(WeatherError) -> AlertMessage? {
        guard let identifier = alert["identifier"]?.text, !identifier.isEmpty, identifier.utf8.count <= 1000,
            let sent = alert["sent"].flatMap({ AnswerTime.date($0.text) })
        else { throw .notCAP }
        guard alert["status"]?.text.lowercased() == "actual",
            let kind = AlertMessage.Kind(rawValue: alert["msgType"]?.text.lowercased() ?? "")
        else { return nil }
        let sender = alert["sender"]?.text ?? ""
        let infos = alert.all("info").compactMap { info($0, sent: sent, sender: sender) }
        let expired = alert.all("info").flatMap { parameters($0, "expiredReferences") }
        return AlertMessage(
            identifier: name(sender, identifier), sent: sent, kind: kind,
            references: names(in: ([alert["references"]?.text ?? ""] + expired).joined(separator: " ")), infos: infos)
    }

    /// An identifier is its sender's: two may use the same.
    private static func name(_ sender: String, _ identifier: String) -> String {
        sender.isEmpty ? identifier : "\(sender),\(identifier)"
    }

    private static func names(in references: String) -> [String] { triples(references).map { name($0.sender, $0.identifier) } }

    /// Identifiers alone, of a service whose own are unlike all others.
    static func references(_ text: String) -> [String] { triples(text).map(\.identifier) }

    /// Triples of sender, identifier and time, with commas, one after the other.
    private static func triples(_ text: String) -> [(sender: String, identifier: String)] {
        text.split(whereSeparator: \.isWhitespace).compactMap { triple in
            let parts = triple.split(separator: ",", omittingEmptySubsequences: false)
            return parts.count == 3 ? (String(parts[0]), String(parts[1])) : nil
        }
    }

    private static func info(_ info: AnswerXML, sent: Date, sender: String) -> AlertInfo? {
        func date(_ name: String) -> Date? { info[name].flatMap { AnswerTime.date($0.text) } }
        guard let event = info["event"]?.text, !event.isEmpty else { return nil }
        let from = date("onset") ?? date("effective") ?? sent
        // CAP's end is that of the message; a service's own word on the event's end counts more.
        let until = parameters(info, "eventEndingTime").compactMap { AnswerTime.date($0) }.first ?? date("expires")
        let codes = info.all("eventCode").filter { $0["valueName"]?.text == "GROUP" }.compactMap { $0["value"]?.text }
        return AlertInfo(
            language: info["language"]?.text, event: event.singleLine(limit: 80),
            hazard: HazardWords.hazard([event] + codes, awarenessType: parameters(info, "awareness_type").first),
            severity: CAPSeverity(
                capName: info["severity"]?.text, urgency: info["urgency"]?.text, certainty: info["certainty"]?.text,
                responses: info.all("responseType").map(\.text)), from: from,
            until: until ?? from.addingTimeInterval(AlertInfo.assumedDuration),
            issuer: (info["senderName"]?.text ?? sender).singleLine(limit: 80), areas: areas(info))
    }

    private static func parameters(_ info: AnswerXML, _ name: String) -> [String] {
        info.all("parameter").filter { $0["valueName"]?.text == name }.compactMap { $0["value"]?.text }
    }

    private static func areas(_ info: AnswerXML) -> [AlertArea] {
        var left = mostCorners
        return info.all("area").map { area in
            var polygons: [[Coordinates]] = []
            for text in area.all("polygon").map(\.text) {
                let corners = text.split(whereSeparator: \.isWhitespace).prefix(left).compactMap { pair($0) }
                left -= corners.count
                if corners.count >= 3 { polygons.append(corners) }
            }
            return AlertArea(
                name: (area["areaDesc"]?.text ?? "").singleLine(limit: 120), polygons: polygons,
                circles: area.all("circle").compactMap { circle($0.text) })
        }
    }

    /// "51.4377,13.3222", latitude first.
    private static func pair(_ text: some StringProtocol) -> Coordinates? {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard parts.count == 2, let latitude = parts[0], let longitude = parts[1] else { return nil }
        return try? Coordinates(latitude: latitude, longitude: longitude)
    }

    /// "51.4,13.3 20", in kilometres.
    private static func circle(_ text: String) -> AlertArea.Circle? {
        let parts = text.split(whereSeparator: \.isWhitespace)
        guard parts.count == 2, let center = pair(parts[0]), let radius = Double(parts[1]), (0...20_100).contains(radius) else {
            return nil
        }
        return AlertArea.Circle(center: center, kilometres: radius)
    }
}

extension AlertInfo {
    /// Seconds that a warning without an end is taken to last.
    static let assumedDuration: TimeInterval = 12 * 3600
}
