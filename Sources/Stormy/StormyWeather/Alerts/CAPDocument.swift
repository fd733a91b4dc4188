import Foundation
import TransferMachines

/// Reads CAP 1.2 documents. Source of the rules: the OASIS standard, and the profiles of the DWD and of MET Norway.
package enum CAPDocument {
    /// The maximum number of corners of all polygons of one document. Real warnings have fewer corners.
    package static let mostCorners = 50_000
    /// The maximum number of `info` elements of one document. The most severe elements are used.
    package static let mostInfos = 200

    /// - Returns: `nil` if the document is a test, an exercise, a draft or an acknowledgement. Tests, exercises, drafts and
    ///   acknowledgements are never shown as real warnings.
    /// - Throws: ``WeatherError`` if the document is not CAP, or if its identifier, time, status, type or warning cannot be read.
    package static func parse(_ data: Data) throws(WeatherError) -> AlertMessage? {
        guard data.count <= ServiceResponse.maximumBytes else { throw .tooLarge(bytes: data.count) }
        let alert = try WeatherError.xml(data)
        guard alert.name == "alert" else { throw .notCAP }
        return try message(alert)
    }

    static func message(_ alert: ResponseXML) throws(WeatherError) -> AlertMessage? {
        guard let identifier = alert["identifier"]?.text, !identifier.isEmpty, identifier.utf8.count <= 1000,
            let sentText = alert["sent"]?.text
        else { throw .notCAP }
        let offset = utcOffset(of: alert)
        // Messages are ordered by the time at which they were sent. If this time has no offset, it counts as UTC.
        guard let sent = ServiceTime.date(sentText, utcOffset: offset ?? 0), let span = span(of: sentText, offset) else {
            throw .notCAP
        }
        guard let isActual = isActual(alert["status"]?.text) else { throw .notCAP }
        let type = alert["msgType"]?.text.lowercased() ?? ""
        if !isActual || type == "ack" || type == "error" { return nil }
        // An update without an `info` element would end the warning that it replaces.
        guard let kind = AlertMessage.Kind(rawValue: type), kind == .cancel || alert["info"] != nil else { throw .notCAP }
        let sender = (alert["sender"]?.text ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        var left = mostCorners
        let elements = alert.all("info")
        let infos = mostSevere(elements).compactMap { info($0, offset, sent: span, sender: sender, corners: &left) }
        let expired = elements.prefix(mostInfos).flatMap { parameters($0, "expiredReferences") }
        var message = AlertMessage(
            identifier: name(sender, identifier), sent: sent, kind: kind,
            references: ([alert["references"]?.text ?? ""] + expired).flatMap { references($0, of: sender) }.map {
                name($0.sender, $0.identifier)
            },
            infos: infos)
        message.sender = sender.isEmpty ? nil : sender
        message.hasTooManyInfos = elements.count > mostInfos ? true : nil
        message.earliestSent = span.lowerBound < span.upperBound ? span.lowerBound : nil
        message.hasNoOffset = hasLocalTimes(alert, offset) ? true : nil
        // If the corners exceed the limit, all areas are removed. A warning with only some of its areas would be missing at the
        // other places.
        if left < 0 { message.removeAreas() }
        return message
    }

    /// Returns whether a status is the status of a real message. `nil` if the document has no status or an unknown status,
    /// because such a warning may be real.
    static func isActual(_ status: String?) -> Bool? {
        switch status?.lowercased() {
        case "actual": true
        case "exercise", "system", "test", "draft": false
        default: nil
        }
    }

    private static func mostSevere(_ infos: [ResponseXML]) -> [ResponseXML] {
        if infos.count <= mostInfos { return infos }
        let ranked = infos.enumerated().map { number, info in
            (rank: severity(info).severity?.rank ?? 0, number: number, info: info)
        }
        return ranked.sorted { ($1.rank, $0.number) < ($0.rank, $1.number) }.prefix(mostInfos).map(\.info)
    }

    /// The maximum number of hours that a local time is behind UTC, and the maximum number of hours that it is ahead of UTC.
    private static let (longestWest, longestEast) = (12.0, 14.0)

    /// Returns the offset for times without an offset: the first offset of another time in the document.
    ///
    /// Services write the time of sending in UTC and the times of the hazard in local time without an offset. For this reason, if
    /// `sent` or `effective` is in UTC, its offset is not used for other times.
    private static func utcOffset(of alert: ResponseXML) -> Int? {
        func offsets(_ elements: [ResponseXML], _ names: [String]) -> [Int] {
            elements.flatMap { element in names.compactMap { element[$0].flatMap { ServiceTime.utcOffset(of: $0.text) } } }
        }
        let infos = alert.all("info")
        let issued = offsets([alert], ["sent"]) + offsets(infos, ["effective"])
        return issued.first { $0 != 0 } ?? offsets(infos, ["onset", "expires"]).first
    }

    /// Returns whether a time of the document is ambiguous, because the time zone is unknown.
    private static func hasLocalTimes(_ alert: ResponseXML, _ offset: Int?) -> Bool {
        let infos = alert.all("info")
        let times = [alert["sent"]] + infos.flatMap { info in ["onset", "effective", "expires"].map { info[$0] } }
        let texts = times.compactMap { $0?.text } + infos.flatMap { parameters($0, "eventEndingTime") }
        return texts.contains { text in span(of: text, offset).map { $0.lowerBound < $0.upperBound } ?? false }
    }

    /// Returns the range of instants that a time may mean. The range contains several instants if neither the time nor the
    /// document has an offset.
    private static func span(of text: String, _ offset: Int?) -> ClosedRange<Date>? {
        if let date = ServiceTime.date(text, utcOffset: offset) { return date...date }
        return ServiceTime.date(text, utcOffset: 0).map { ($0 - longestEast * 3600)...($0 + longestWest * 3600) }
    }

    private static func info(
        _ info: ResponseXML, _ offset: Int?, sent: ClosedRange<Date>, sender: String, corners left: inout Int
    ) -> AlertInfo? {
        if isGreen(info) { return nil }
        let times = ["onset", "effective", "expires"].map { info[$0]?.text ?? "" }
        let spans = times.map { Self.span(of: $0, offset) }
        let begins = spans[0] ?? spans[1] ?? sent
        let endingTimes = parameters(info, "eventEndingTime").filter { !$0.isEmpty }
        let ends = endingTimes.compactMap { Self.span(of: $0, offset) }.first
        let end = HazardEnd(
            from: begins.upperBound, ends: ends?.upperBound, expires: spans[2]?.upperBound, sent: sent.upperBound,
            eventCodes: parameters(info, "VTEC"))
        let evidence = evidence(info, sender: sender)
        var result = AlertInfo(
            language: info["language"]?.text, event: evidence.eventName, hazard: evidence.hazard, severity: nil,
            from: begins.lowerBound, until: end.until, hasOpenEnd: end.isOpen, sent: sent.upperBound,
            issuer: (info["senderName"]?.text ?? sender).singleLine(limit: 80), areas: areas(info, corners: &left),
            texts: AlertTexts(
                headline: info["headline"]?.text, description: info["description"]?.text,
                instruction: info["instruction"]?.text))
        result.add(severity(info))
        let hasUnreadTime = zip(times, spans).contains { !$0.isEmpty && $1 == nil }
        if hasUnreadTime || ends == nil && !endingTimes.isEmpty { result.doubt(.time) }
        return result
    }

    private static func severity(_ info: ResponseXML) -> SeverityEvidence {
        SeverityEvidence(
            name: info["severity"]?.text, urgency: info["urgency"]?.text, certainty: info["certainty"]?.text,
            responses: info.all("responseType").map(\.text), awarenessLevels: parameters(info, "awareness_level"))
    }

    /// The maximum number of codes and areas of an `info` element that are used to find the kind of its hazard.
    private static let mostEvidence = 500

    private static func evidence(_ info: ResponseXML, sender: String) -> HazardEvidence {
        let areas = info.all("area")
        let zones = areas.flatMap { $0.all("geocode") }.filter { $0["valueName"]?.text == "UGC" }.compactMap { $0["value"]?.text }
        func text(_ name: String) -> String { (info[name]?.text ?? "").singleLine(limit: AlertTexts.longestHeadline) }
        return HazardEvidence(
            events: [text("event")], headlines: [text("headline")],
            codes: info.all("eventCode").prefix(mostEvidence).compactMap { code in
                guard let list = code["valueName"]?.text, let value = code["value"]?.text else { return nil }
                return HazardEvidence.Code(list: list, value: value)
            },
            awarenessTypes: parameters(info, "awareness_type"), categories: info.all("category").map(\.text),
            zones: zones,
            // If there are too many areas, no area is used, because a part of the areas cannot show whether all areas are at sea.
            areaNames: areas.count > mostEvidence ? [] : areas.compactMap { $0["areaDesc"]?.text.singleLine(limit: 1000) },
            isUS: sender.hasSuffix("noaa.gov"))
    }

    /// Returns `true` for MeteoAlarm's level 1, for example "1; green; Minor". At this level, no warning is in force.
    private static func isGreen(_ info: ResponseXML) -> Bool {
        parameters(info, "awareness_level").contains { $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces) == "1" }
    }

    private static func parameters(_ info: ResponseXML, _ name: String) -> [String] {
        info.all("parameter").filter { $0["valueName"]?.text == name }.compactMap { $0["value"]?.text }
    }

    /// - Parameter left: The number of corners that may still be read. If the area has more corners, the value is negative after
    ///   the call.
    private static func areas(_ info: ResponseXML, corners left: inout Int) -> [AlertArea] {
        var areas: [AlertArea] = []
        for element in info.all("area") { areas.append(area(element, corners: &left)) }
        return areas
    }

    /// Reads an area of a document or of a feed's entry.
    static func area(_ area: ResponseXML, corners left: inout Int) -> AlertArea {
        var (polygons, circles): ([[Coordinates]], [AlertArea.Circle]) = ([], [])
        var (isUnreadable, isWithoutArea) = (false, false)
        for polygon in area.all("polygon") where left >= 0 && !polygon.text.isEmpty {
            let ring = corners(polygon.text, most: left + 1) ?? []
            left -= ring.count
            if ring.count < 3 {
                isUnreadable = true
            } else if AlertArea.hasArea(ring) {
                polygons.append(ring)
            } else {
                isWithoutArea = true
            }
        }
        for element in area.all("circle") where !element.text.isEmpty {
            if let circle = circle(element.text) { circles.append(circle) } else { isUnreadable = true }
        }
        var result = AlertArea(
            name: (area["areaDesc"]?.text ?? "").singleLine(limit: 120), polygons: polygons, circles: circles, codes: codes(area))
        isWithoutArea = (isWithoutArea || !circles.isEmpty) && !result.isDrawn
        result.hasUnreadableShape = isUnreadable || isWithoutArea && result.regions.isEmpty
        return result
    }

    /// Returns the codes of an area, without duplicates. Only codes whose types are in the region table are returned. A value may
    /// list several codes.
    private static func codes(_ area: ResponseXML) -> [RegionCode] {
        var found: Set<RegionCode> = []
        return area.all("geocode").flatMap { geocode -> [RegionCode] in
            let values = (geocode["value"]?.text ?? "").split { $0.isWhitespace || $0 == "," || $0 == ";" }
            return values.map { RegionCode(type: geocode["valueName"]?.text ?? "", value: String($0)) }
        }.filter { RegionTable.europe.isEuropean($0) && found.insert($0).inserted }
    }
}
