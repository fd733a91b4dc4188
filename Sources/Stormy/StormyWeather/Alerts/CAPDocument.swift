import Foundation
import TransferMachines

/// Reads CAP 1.2 documents. Source of the rules: the OASIS standard, and the profiles of the DWD and of MET Norway.
package enum CAPDocument {
    /// The maximum number of corners of all polygons of one document. No real warning has as many.
    package static let mostCorners = 50_000

    /// - Returns: `nil`: a test, an exercise, a draft or an acknowledgement, which is never shown as real.
    /// - Throws: ``WeatherError``: no CAP, or one that says not who, when or what.
    package static func parse(_ data: Data) throws(WeatherError) -> AlertMessage? {
        guard data.count <= ServiceAnswer.maximumBytes else { throw .tooLarge(bytes: data.count) }
        guard let alert = AnswerXML.read(data), alert.name == "alert" else { throw .notCAP }
        return try message(alert)
    }

    static func message(_ alert: AnswerXML) throws(WeatherError) -> AlertMessage? {
        guard let identifier = alert["identifier"]?.text, !identifier.isEmpty, identifier.utf8.count <= 1000,
            // A time without an offset counts as UTC here, because it orders messages. Such an onset or end is not used.
            let sent = alert["sent"].flatMap({ AnswerTime.date($0.text, utcOffset: 0) })
        else { throw .notCAP }
        guard alert["status"]?.text.lowercased() == "actual",
            let kind = AlertMessage.Kind(rawValue: alert["msgType"]?.text.lowercased() ?? "")
        else { return nil }
        let sender = alert["sender"]?.text ?? ""
        var left = mostCorners
        let infos = alert.all("info").compactMap { info($0, sent: sent, sender: sender, corners: &left) }
        let expired = alert.all("info").flatMap { parameters($0, "expiredReferences") }
        var message = AlertMessage(
            identifier: name(sender, identifier), sent: sent, kind: kind,
            references: names(in: ([alert["references"]?.text ?? ""] + expired).joined(separator: " ")), infos: infos)
        message.sender = sender.isEmpty ? nil : sender
        // A part of the areas would be a warning that holds elsewhere.
        if left < 0 { message.leaveOutAreas() }
        return message
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

    private static func info(_ info: AnswerXML, sent: Date, sender: String, corners left: inout Int) -> AlertInfo? {
        func date(_ name: String) -> Date? { info[name].flatMap { AnswerTime.date($0.text) } }
        guard let event = info["event"]?.text, !event.isEmpty, !isGreen(info) else { return nil }
        let from = date("onset") ?? date("effective") ?? sent
        let end = HazardEnd(
            from: from, ends: parameters(info, "eventEndingTime").compactMap { AnswerTime.date($0) }.first,
            expires: date("expires"), sent: sent, eventCodes: parameters(info, "VTEC"))
        return AlertInfo(
            language: info["language"]?.text, event: event.singleLine(limit: 80),
            hazard: evidence(info, event, sender: sender).hazard,
            severity: CAPSeverity(
                capName: info["severity"]?.text, urgency: info["urgency"]?.text, certainty: info["certainty"]?.text,
                responses: info.all("responseType").map(\.text)), from: from,
            until: end.until, hasOpenEnd: end.isOpen,
            issuer: (info["senderName"]?.text ?? sender).singleLine(limit: 80), areas: areas(info, corners: &left),
            texts: AlertTexts(
                headline: info["headline"]?.text, description: info["description"]?.text,
                instruction: info["instruction"]?.text))
    }

    /// The maximum number of codes and areas of one block that are looked at for the kind of its hazard.
    private static let mostEvidence = 500

    private static func evidence(_ info: AnswerXML, _ event: String, sender: String) -> HazardEvidence {
        let areas = info.all("area")
        let zones = areas.flatMap { $0.all("geocode") }.filter { $0["valueName"]?.text == "UGC" }.compactMap { $0["value"]?.text }
        return HazardEvidence(
            words: [event, info["headline"]?.text ?? ""].map { $0.singleLine(limit: AlertTexts.longestHeadline) },
            codes: info.all("eventCode").prefix(mostEvidence).compactMap { code in
                guard let list = code["valueName"]?.text, let value = code["value"]?.text else { return nil }
                return HazardEvidence.Code(list: list, value: value)
            },
            awarenessTypes: parameters(info, "awareness_type"), categories: info.all("category").map(\.text),
            zones: zones,
            // A part of the areas does not show if all areas lie at sea.
            areaNames: areas.count > mostEvidence ? [] : areas.compactMap { $0["areaDesc"]?.text.singleLine(limit: 1000) },
            isUS: sender.hasSuffix("noaa.gov"))
    }

    /// `true` for MeteoAlarm's level 1, "1; green; Minor": no warning is in force.
    private static func isGreen(_ info: AnswerXML) -> Bool {
        parameters(info, "awareness_level").contains { $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces) == "1" }
    }

    private static func parameters(_ info: AnswerXML, _ name: String) -> [String] {
        info.all("parameter").filter { $0["valueName"]?.text == name }.compactMap { $0["value"]?.text }
    }

    /// - Parameter left: the number of corners that may be read. Negative afterwards if there are more.
    private static func areas(_ info: AnswerXML, corners left: inout Int) -> [AlertArea] {
        var areas: [AlertArea] = []
        for element in info.all("area") { areas.append(area(element, corners: &left)) }
        return areas
    }

    /// Reads one area, also of an entry of a feed.
    static func area(_ area: AnswerXML, corners left: inout Int) -> AlertArea {
        var polygons: [[Coordinates]] = []
        for polygon in area.all("polygon") where left >= 0 {
            let ring = corners(polygon.text, most: left + 1)
            left -= ring.count
            if ring.count >= 3 { polygons.append(ring) }
        }
        return AlertArea(
            name: (area["areaDesc"]?.text ?? "").singleLine(limit: 120), polygons: polygons,
            circles: area.all("circle").compactMap { circle($0.text) }, codes: codes(area))
    }

    /// The codes of an area, each once, of the types that the region table has. A value may list several codes.
    private static func codes(_ area: AnswerXML) -> [RegionCode] {
        var found: Set<RegionCode> = []
        return area.all("geocode").flatMap { geocode -> [RegionCode] in
            let values = (geocode["value"]?.text ?? "").split { $0.isWhitespace || $0 == "," || $0 == ";" }
            return values.map { RegionCode(type: geocode["valueName"]?.text ?? "", value: String($0)) }
        }.filter { RegionTable.europe.isEuropean($0) && found.insert($0).inserted }
    }

    private typealias Word = Slice<UnsafeBufferPointer<UInt8>>

    /// Pairs such as "51.4377,13.3222", latitude first, with blanks between them. Bytes are read one by one, because a polygon may have
    /// megabytes of text.
    private static func corners(_ text: String, most: Int) -> [Coordinates] {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        var text = text
        return text.withUTF8 { bytes in
            var (corners, rest): ([Coordinates], Word) = ([], bytes[...])
            while corners.count < most {
                rest = rest.drop(while: isBlank)
                let word = rest.prefix { !isBlank($0) }
                guard !word.isEmpty else { break }
                rest = rest[word.endIndex...]
                if let corner = pair(word) { corners.append(corner) }
            }
            return corners
        }
    }

    private static func pair(_ word: Word) -> Coordinates? {
        guard let comma = word.firstIndex(of: UInt8(ascii: ",")), let latitude = number(word[..<comma]),
            let longitude = number(word[(comma + 1)...])
        else { return nil }
        return try? Coordinates(latitude: latitude, longitude: longitude)
    }

    /// Powers of ten that a `Double` holds exactly: a quotient by them is the nearest number to the text.
    private static let powers: [Double] = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15]

    /// A number with up to 15 digits. The standard library reads all others.
    private static func number(_ word: Word) -> Double? {
        let isNegative = word.first == UInt8(ascii: "-")
        var (value, digits, decimals, hasPoint) = (0, 0, 0, false)
        for byte in isNegative ? word.dropFirst() : word {
            if byte == UInt8(ascii: "."), !hasPoint {
                hasPoint = true
            } else if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), digits < 15 {
                value = 10 * value + Int(byte - UInt8(ascii: "0"))
                digits += 1
                if hasPoint { decimals += 1 }
            } else {
                return Double(String(decoding: word, as: UTF8.self))
            }
        }
        guard digits > 0 else { return nil }
        return Double(isNegative ? -value : value) / powers[decimals]
    }

    /// "51.4,13.3 20", in kilometres.
    private static func circle(_ text: String) -> AlertArea.Circle? {
        let parts = text.split(whereSeparator: \.isWhitespace)
        guard parts.count == 2, let center = corners(String(parts[0]), most: 1).first, let radius = Double(parts[1]),
            (0...20_100).contains(radius)
        else { return nil }
        return AlertArea.Circle(center: center, kilometres: radius)
    }
}
