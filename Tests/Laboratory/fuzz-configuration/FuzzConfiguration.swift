import Foundation
import StormyConfiguration
import StormyWeather

/// The time at which all warnings are assessed, in July 2026.
private let now = Date(timeIntervalSince1970: 1_783_000_000)

/// Assesses warnings that refer to each other in any way and have any areas.
private func look(at messages: [AlertMessage]) {
    guard let place = try? Coordinates(latitude: 50, longitude: 10) else { return }
    var book = AlertBook()
    for (number, message) in messages.enumerated() {
        var message = message
        message.link = "\(number % 2)"
        book.add(message)
    }
    _ = book.unusedReferences(of: messages, now: now)
    book.endEmptyDocuments(["1"], [], now: now)
    book.assumeUnlistedEnds(by: [])
    book.endMissingWarnings(from: [], messages, now: now)
    book.removeDistant(at: place, isAsked: false)
    var asked = book
    asked.removeDistant(at: place, isAsked: true)
    _ = StormRule().assess(Forecast(hours: []), alerts: book.events(at: place, language: "en"), now: now)
    book.prune(before: now)
}

/// Checks a region table. Every look-up must return only regions of the table.
private func look(at table: RegionTable) {
    for region in table.regions {
        precondition(table.region(RegionCode(type: "EMMA_ID", value: region.code)) == region, "a region is not found by its code")
    }
    for (latitude, longitude) in [(50.0, 10.0), (0.5, 0.5), (-90, 180), (89.99, -180), (47.4, 8.5)] {
        guard let place = try? Coordinates(latitude: latitude, longitude: longitude) else { continue }
        let found = RegionCoverage(of: place, in: table)
        precondition(found.regions.isEmpty == (found.gap != nil), "neither a region nor a reason")
        precondition(found.regions.allSatisfy { !$0.isSea && table.regions.contains($0) }, "a region that does not count")
    }
}

/// Checks a feed of MeteoAlarm. No document may be listed twice.
private func look(at feed: MeteoAlarmFeed) {
    guard let place = try? Coordinates(latitude: 45.9, longitude: 6.13) else { return }
    let content = feed.content(at: place)
    let addresses = content.entries.map { "\($0)" }
    precondition(Set(addresses).count == addresses.count, "a document is listed twice")
    precondition(content.entries.count + content.leftOut <= feed.count, "more documents than the feed has")
}

/// Parses texts of users and weather services. A text may cause an error that contains a position in the text, but must not cause
/// a crash.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard let first = bytes.first else { return 0 }
    let rest = Data(bytes.dropFirst())
    switch first % 8 {
    case 0:
        let request = WeatherRequest(url: "")
        for provider in WeatherProvider.allCases {
            let answer = try? provider.service().read(rest, status: 200, to: request, now: now)
            if case .forecast(let forecast)? = answer { _ = StormRule().assess(forecast, now: now) }
        }
    case 1: _ = try? OpenMeteo.parseGeocoding(rest)
    case 3:
        if let message = try? CAPDocument.parse(rest) { look(at: [message]) }
    case 4:
        let entries = (try? AlertFeed.parse(rest, base: "https://feed.example/all.xml"))?.entries ?? []
        look(at: entries.compactMap { if case .message(let message) = $0 { message } else { nil } })
    case 6:
        if let table = try? RegionTable(Array(rest)) { look(at: table) }
    case 7:
        if let feed = try? MeteoAlarmFeed(reading: rest, status: 200) { look(at: feed) }
    case 5:
        for service in AlertService.allCases {
            if let answer = try? service.read(rest, status: 200, now: now) { look(at: answer.messages) }
        }
    default: _ = try? Configuration.parse(text: String(decoding: rest, as: UTF8.self), path: "config.toml")
    }
    return 0
}
