import Foundation
import StormyWeather
import Testing
import TransferMachines

/// Tests the plot of the next hours in a terminal and as a picture.
@Suite struct ForecastPlotTests {
    private let noon = Date(timeIntervalSince1970: 1_770_465_600)
    private let rule = StormRule()

    private func plotted(
        _ count: Int = 24, gusts: Bool = true, locale: String = "en_GB", offset: Double = 0, zone: String = "UTC"
    ) throws -> PlottedHours {
        let hours = (0..<60).map { index -> ForecastHour in
            let isWet = [5, 6].contains(index)
            let rain: Double = isWet ? 6.25 : index == 4 ? 0.2 : 0
            return ForecastHour(
                start: noon + Double(index) * 3600 + offset, weatherCode: isWet || index == 9 ? 95 : 3, precipitationMM: rain,
                gustsKMH: gusts ? 20 + Double(index) : nil, temperatureC: Double(index) - 3)
        }
        let forecast = Forecast(hours: hours)
        return PlottedHours(
            forecast, rule.assess(forecast, now: noon + 600), rule: rule, now: noon + 600, count: count,
            timeZone: try #require(TimeZone(identifier: zone)), locale: Locale(identifier: locale),
            units: WeatherUnits(region: Locale(identifier: locale).region?.identifier))
    }

    @Test func `twelve hours are plotted in eighty columns`() throws {
        let lines = ForecastPlot(try plotted(12, gusts: false), columns: 80, style: .plain).lines
        #expect(
            lines == [
                "        12 13 14 15 16 17 18 19 20 21 22 23", "storm                  !! !!       ??",
                "rain    ·  ·  ·  ·  ▁▁ ██ ██ ·  ·  ·  ·  ·", "degrees -3 -2 -1 0  1  2  3  4  5  6  7  8", "",
                "Rain up to 6.3 mm per hour; degrees are Celsius. !! marks a storm. ?? marks an",
                "hour that does not count as a storm.",
            ])
    }

    /// The ASCII style contains only ASCII characters.
    @Test(arguments: [20, 33, 40, 79, 80, 81, 200])
    func `no line is wider than the terminal, and up to 60 hours are shown`(_ columns: Int) throws {
        for (style, count) in [(ForecastPlot.Style.plain, 24), (.ascii, 72), (.coloured, 1)] {
            let lines = ForecastPlot(try plotted(count), columns: columns, style: style).lines
            let escape = try Regex("\u{1B}\\[[0-9;]*m")
            let bare = lines.map { $0.replacing(escape, with: "") }
            #expect(bare.allSatisfy { $0.count <= columns }, "\(bare)")
            #expect(bare == lines || style == .coloured)
            if style == .ascii { #expect(lines.allSatisfy { $0.utf8.allSatisfy { $0 < 128 } }) }
            let cells = bare.filter { $0.hasPrefix("gusts") }.flatMap { $0.dropFirst(8).split(separator: " ") }
            #expect(cells.count == min(count, 60))
        }
    }

    @Test func `hours have the time zone of the place and the format of the reader`() throws {
        func first(_ plotted: PlottedHours) -> String { ForecastPlot(plotted, columns: 80, style: .plain).lines[0] }
        #expect(first(try plotted(3, zone: "Asia/Kolkata")) == "        17 18 19")
        let american = ForecastPlot(try plotted(13, locale: "en_US"), columns: 80, style: .plain).lines
        #expect(american[0] == "        pm                                  am" && american[1].hasPrefix("        12 1  2  3"))
        // The hours of this service begin at half past.
        #expect(try plotted(3, offset: 1800).hours.map(\.gustsKMH) == [20, 21, 22])
        #expect(ForecastPlot(try plotted(0), columns: 80, style: .plain).lines == ["The forecast has no future hours."])
    }

    @Test func `the picture is valid XML and escapes its texts`() throws {
        let picture = ForecastPicture(
            try plotted(), title: "<b>Sydney & \"Co\"\u{1B}[31m", summary: "Storm <script>alert(1)</script>", source: "Open-Meteo"
        )
        let svg = picture.svg
        #expect(ResponseXML.read(Data(svg.utf8)) != nil)
        #expect(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains("\u{1B}"))
        #expect(svg.contains("&lt;b&gt;Sydney &amp; &quot;Co&quot;") && svg.contains("prefers-color-scheme: dark"))
        #expect(
            svg.components(separatedBy: "class=\"storm\"").count == 3 && svg.components(separatedBy: "class=\"doubt\"").count == 2
        )
        #expect(svg.utf8.count < 20_000)
        // The forecast has no hours, or only one hour.
        for count in [0, 1] {
            let small = ForecastPicture(try plotted(count), title: "", summary: "", source: "").svg
            #expect(ResponseXML.read(Data(small.utf8)) != nil)
        }
    }
}
