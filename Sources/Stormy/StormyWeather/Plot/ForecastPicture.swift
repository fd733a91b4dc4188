import Foundation

/// An SVG picture of the next hours: a single file without scripts, fonts or external resources. The picture is readable on dark
/// and on light pages.
package struct ForecastPicture {
    private let plotted: PlottedHours
    private let title: String
    private let summary: String
    private let source: String
    /// An identifier that distinguishes several pictures on one page.
    private let mark: String

    private static let (width, height) = (760.0, 340.0)
    private static let (left, right, top, bottom) = (46.0, 714.0, 62.0, 284.0)

    /// - Parameters:
    ///   - title: the place, for example "Sydney".
    ///   - summary: a sentence about the expected weather. Screen readers also read this sentence.
    ///   - source: the name of the service that is credited, and the age of the forecast.
    ///   - mark: An identifier that distinguishes several pictures on one page.
    package init(_ plotted: PlottedHours, title: String, summary: String, source: String, mark: String = "") {
        self.mark = mark
        (self.plotted, self.title) = (plotted, title)
        (self.summary, self.source) = (summary, source)
    }

    /// The size of the picture in pixels.
    package static let size = (width: width, height: height)

    /// The shapes of the complete picture, for formats other than ``svg``.
    package var shapes: [PictureShape] {
        [
            .text(
                title.singleLine(limit: 60), at: .init(x: Self.left, y: 24), .text, size: 18, isBold: true, endsThere: false),
            .text(
                source.singleLine(limit: 60), at: .init(x: Self.right, y: 24), .quiet, size: 13, isBold: false, endsThere: true),
            .text(
                summary.singleLine(limit: 110), at: .init(x: Self.left, y: 46), .quiet, size: 13, isBold: false, endsThere: false),
        ] + storms + grid + rain + gusts + temperatures + legend
    }

    package var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" class="forecast" viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role="img" aria-labelledby="t\(mark) d\(mark)">
        <title id="t\(mark)">\(Self.escaped(title))</title>
        <desc id="d\(mark)">\(Self.escaped(summary))</desc>
        <style>
        \(Self.style)
        </style>
        \(shapes.map(Self.element).joined(separator: "\n"))
        </svg>

        """
    }

    /// The styles use only classes of this picture, so that the rest of a page does not change.
    private static let style = """
        .forecast { background: #ffffff; font: 13px sans-serif }
        .forecast text { fill: #222222 } .forecast .quiet { fill: #666666 } .forecast .grid { stroke: #dddddd }
        .forecast .storm { fill: #c62828; opacity: 0.18 } .forecast .doubt { fill: #f9a825; opacity: 0.18 }
        .forecast .rain { fill: #1565c0 } .forecast .gusts { stroke: #00838f } .forecast .limit { stroke: #c62828 }
        .forecast .warm { stroke: #6d4c41 } .forecast .line { fill: none; stroke-width: 2 }
        @media (prefers-color-scheme: dark) {
        .forecast { background: #1e1e1e } .forecast text { fill: #eeeeee } .forecast .quiet { fill: #aaaaaa }
        .forecast .grid { stroke: #444444 } .forecast .storm { fill: #ef5350; opacity: 0.3 }
        .forecast .doubt { fill: #fdd835; opacity: 0.22 } .forecast .rain { fill: #64b5f6 } .forecast .gusts { stroke: #4dd0e1 }
        .forecast .limit { stroke: #ef5350 } .forecast .warm { stroke: #bcaaa4 }
        }
        """

    // MARK: Places

    private var step: Double { (Self.right - Self.left) / Double(max(1, plotted.hours.count)) }

    private func x(_ index: Int) -> Double { Self.left + Double(index) * step }

    private func y(_ part: Double) -> Double { Self.bottom - min(max(part, 0), 1) * (Self.bottom - Self.top) }

    // MARK: Parts

    private var storms: [PictureShape] {
        plotted.hours.enumerated().filter { $0.element.mark != .none }.map { index, hour in
            .rectangle(
                x: x(index), y: Self.top, width: step, height: Self.bottom - Self.top, hour.mark == .storm ? .storm : .doubt)
        }
    }

    private var grid: [PictureShape] {
        var shapes = [line([(Self.left, Self.bottom), (Self.right, Self.bottom)], .grid, width: 1)]
        // Every third hour is labelled, or fewer hours if the picture shows many hours.
        let each = max(3, (plotted.hours.count / 24) * 3)
        for (index, hour) in plotted.hours.enumerated() where index % each == 0 {
            shapes.append(line([(x(index), Self.top), (x(index), Self.bottom)], .grid, width: 1))
            shapes.append(text(label(hour), x(index) + 3, Self.bottom + 17, .quiet))
        }
        return shapes
    }

    private func label(_ hour: PlottedHours.Hour) -> String {
        plotted.label(hour) + (plotted.half(hour, isFirst: true).map { " " + $0 } ?? "")
    }

    private var rain: [PictureShape] {
        let most = max(plotted.mostRain, 4)
        return plotted.hours.enumerated().compactMap { index, hour in
            guard let value = hour.rainMM, value > 0 else { return nil }
            let high = y(value / most)
            return .rectangle(x: x(index) + step * 0.2, y: high, width: step * 0.6, height: Self.bottom - high, .rain)
        }
    }

    private var gusts: [PictureShape] {
        guard let most = plotted.mostGusts else { return [] }
        let top = max(most, plotted.gustsLimit) * 1.1
        let limit = y(plotted.gustsLimit / top)
        return curve(.gusts) { $0.gustsKMH.map { $0 / top } } + [
            line([(Self.left, limit), (Self.right, limit)], .limit, isDashed: true),
            text(plotted.units.speed(plotted.gustsLimit), Self.right - 62, limit - 5, .quiet),
        ]
    }

    private var temperatures: [PictureShape] {
        let values = plotted.hours.compactMap(\.temperatureC)
        guard let low = values.min(), let high = values.max() else { return [] }
        let span = max(high - low, 5)
        func part(_ value: Double) -> Double { 0.15 + 0.7 * (value - low) / span }
        let labels = plotted.hours.enumerated().compactMap { index, hour -> PictureShape? in
            guard index % 6 == 0, let value = hour.temperatureC else { return nil }
            return text("\(plotted.units.degrees(value))°", x(index) + step / 2, y(part(value)) - 6, .text)
        }
        return curve(.warm) { $0.temperatureC.map(part) } + labels
    }

    private var legend: [PictureShape] {
        var words: [(PictureShape.Ink, String)] = [(.rain, "rain up to \(plotted.units.rain(plotted.mostRain))")]
        if let gusts = plotted.mostGusts { words.append((.gusts, "gusts up to \(plotted.units.speed(gusts))")) }
        if plotted.hours.contains(where: { $0.temperatureC != nil }) { words.append((.warm, "degrees \(plotted.units.scale)")) }
        let y = Self.height - 14
        return words.enumerated().flatMap { index, word in
            let x = Self.left + Double(index) * 220
            let sign: PictureShape =
                word.0 == .rain
                ? .rectangle(x: x, y: y - 10, width: 14, height: 11, .rain) : line([(x, y - 4), (x + 14, y - 4)], word.0)
            return [sign, text(word.1, x + 20, y, .text)]
        }
    }

    /// Returns the lines of a curve. For hours without a value, the curve has a gap.
    private func curve(_ ink: PictureShape.Ink, _ part: (PlottedHours.Hour) -> Double?) -> [PictureShape] {
        var runs: [[(Double, Double)]] = [[]]
        for (index, hour) in plotted.hours.enumerated() {
            if let part = part(hour) {
                runs[runs.count - 1].append((x(index) + step / 2, y(part)))
            } else if runs.last?.isEmpty == false {
                runs.append([])
            }
        }
        return runs.filter { $0.count > 1 }.map { line($0, ink) }
    }

    private func line(
        _ points: [(Double, Double)], _ ink: PictureShape.Ink, isDashed: Bool = false, width: Double = 2
    ) -> PictureShape {
        .line(points.map { PictureShape.Point(x: $0.0, y: $0.1) }, ink, isDashed: isDashed, width: width)
    }

    private func text(_ words: String, _ x: Double, _ y: Double, _ ink: PictureShape.Ink) -> PictureShape {
        .text(words, at: .init(x: x, y: y), ink, size: 13, isBold: false, endsThere: false)
    }

    // MARK: SVG

    private static func element(_ shape: PictureShape) -> String {
        switch shape {
        case .rectangle(let x, let y, let width, let height, let ink):
            return
                "<rect class=\"\(ink.rawValue)\" x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(width))\" height=\"\(number(height))\"/>"
        case .line(let points, let ink, let isDashed, let width):
            let places = points.map { "\(number($0.x)),\(number($0.y))" }.joined(separator: " ")
            return
                "<polyline class=\"\(ink.rawValue)\(width > 1 ? " line" : "")\"\(isDashed ? " stroke-dasharray=\"6 5\"" : "") points=\"\(places)\"/>"
        case .text(let words, let at, let ink, let size, let isBold, let endsThere):
            let style =
                (ink == .text ? "" : " class=\"\(ink.rawValue)\"") + (size == 13 ? "" : " font-size=\"\(number(size))\"")
                + (isBold ? " font-weight=\"bold\"" : "") + (endsThere ? " text-anchor=\"end\"" : "")
            return "<text x=\"\(number(at.x))\" y=\"\(number(at.y))\"\(style)>\(escaped(words))</text>"
        }
    }

    private static func number(_ value: Double) -> String { StormReason.tenths(value) }

    private static func escaped(_ text: String) -> String { text.escapedForMarkup(limit: 200) }
}

extension StringProtocol {
    /// Returns the text on one line, without control characters, escaped for a text or an attribute of HTML or XML.
    package func escapedForMarkup(limit: Int) -> String {
        let entities: [Character: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"]
        return singleLine(limit: limit).map { entities[$0] ?? String($0) }.joined()
    }
}
