import Foundation

/// The coming hours as an SVG: one file without a script, a font or anything from elsewhere, readable on dark and on light.
package struct ForecastPicture {
    private let plotted: PlottedHours
    private let title: String
    private let summary: String
    private let source: String
    /// Tells it from another on one page.
    private let mark: String

    private static let (width, height) = (760.0, 340.0)
    private static let (left, right, top, bottom) = (46.0, 714.0, 62.0, 284.0)

    /// - Parameters:
    ///   - title: "Sydney".
    ///   - summary: what is expected, in a sentence: also what a screen reader says.
    ///   - source: whom to credit, and how old it is.
    ///   - mark: tells it from another on one page.
    package init(_ plotted: PlottedHours, title: String, summary: String, source: String, mark: String = "") {
        self.mark = mark
        (self.plotted, self.title) = (plotted, title)
        (self.summary, self.source) = (summary, source)
    }

    package var svg: String {
        let parts = [storms, grid, rain, gusts, temperatures, legend]
        return """
            <svg xmlns="http://www.w3.org/2000/svg" class="forecast" viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" role="img" aria-labelledby="t\(mark) d\(mark)">
            <title id="t\(mark)">\(Self.escaped(title))</title>
            <desc id="d\(mark)">\(Self.escaped(summary))</desc>
            <style>
            \(Self.style)
            </style>
            <text x="\(Self.number(Self.left))" y="24" font-size="18" font-weight="bold">\(Self.escaped(title))</text>
            <text x="\(Self.number(Self.right))" y="24" text-anchor="end" class="quiet">\(Self.escaped(source))</text>
            <text x="\(Self.number(Self.left))" y="46" class="quiet">\(Self.escaped(summary))</text>
            \(parts.joined(separator: "\n"))
            </svg>

            """
    }

    /// By classes of its own, so that it changes nothing else on a page.
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

    private var storms: String {
        plotted.hours.enumerated().filter { $0.element.mark != .none }.map { index, hour in
            rectangle(
                x(index), Self.top, step, Self.bottom - Self.top, hour.mark == .storm ? "storm" : "doubt")
        }.joined(separator: "\n")
    }

    private var grid: String {
        var lines = [
            "<line class=\"grid\" x1=\"\(Self.number(Self.left))\" x2=\"\(Self.number(Self.right))\" \(vertical(Self.bottom))/>"
        ]
        // Each third hour, or fewer where many are drawn.
        let each = max(3, (plotted.hours.count / 24) * 3)
        for (index, hour) in plotted.hours.enumerated() where index % each == 0 {
            lines.append(
                "<line class=\"grid\" x1=\"\(Self.number(x(index)))\" x2=\"\(Self.number(x(index)))\" y1=\"\(Self.number(Self.top))\" y2=\"\(Self.number(Self.bottom))\"/>"
            )
            lines.append(text(label(hour), x(index) + 3, Self.bottom + 17, "quiet"))
        }
        return lines.joined(separator: "\n")
    }

    private func label(_ hour: PlottedHours.Hour) -> String {
        plotted.label(hour) + (plotted.half(hour, isFirst: true).map { " " + $0 } ?? "")
    }

    private func vertical(_ y: Double) -> String { "y1=\"\(Self.number(y))\" y2=\"\(Self.number(y))\"" }

    private var rain: String {
        let most = max(plotted.mostRain, 4)
        return plotted.hours.enumerated().compactMap { index, hour in
            guard let value = hour.rainMM, value > 0 else { return nil }
            let high = y(value / most)
            return rectangle(x(index) + step * 0.2, high, step * 0.6, Self.bottom - high, "rain")
        }.joined(separator: "\n")
    }

    private var gusts: String {
        guard let most = plotted.mostGusts else { return "" }
        let top = max(most, plotted.gustsLimit) * 1.1
        let limit = y(plotted.gustsLimit / top)
        let line = curve("gusts") { $0.gustsKMH.map { $0 / top } }
        return line
            + "\n<line class=\"limit line\" stroke-dasharray=\"6 5\" x1=\"\(Self.number(Self.left))\" x2=\"\(Self.number(Self.right))\" \(vertical(limit))/>\n"
            + text(plotted.units.speed(plotted.gustsLimit), Self.right - 62, limit - 5, "quiet")
    }

    private var temperatures: String {
        let values = plotted.hours.compactMap(\.temperatureC)
        guard let low = values.min(), let high = values.max() else { return "" }
        let span = max(high - low, 5)
        func part(_ value: Double) -> Double { 0.15 + 0.7 * (value - low) / span }
        let labels = plotted.hours.enumerated().compactMap { index, hour -> String? in
            guard index % 6 == 0, let value = hour.temperatureC else { return nil }
            return text("\(plotted.units.degrees(value))°", x(index) + step / 2, y(part(value)) - 6, "")
        }
        return ([curve("warm") { $0.temperatureC.map(part) }] + labels).joined(separator: "\n")
    }

    private var legend: String {
        var words = [("rain", "rain up to \(plotted.units.rain(plotted.mostRain))")]
        if let gusts = plotted.mostGusts { words.append(("gusts", "gusts up to \(plotted.units.speed(gusts))")) }
        if plotted.hours.contains(where: { $0.temperatureC != nil }) { words.append(("warm", "degrees \(plotted.units.scale)")) }
        let y = Self.height - 14
        return words.enumerated().map { index, word in
            let x = Self.left + Double(index) * 220
            let sign =
                word.0 == "rain"
                ? rectangle(x, y - 10, 14, 11, "rain")
                : "<line class=\"\(word.0) line\" x1=\"\(Self.number(x))\" x2=\"\(Self.number(x + 14))\" \(vertical(y - 4))/>"
            return sign + "\n" + text(word.1, x + 20, y, "")
        }.joined(separator: "\n")
    }

    // MARK: SVG

    /// Gaps where nothing is known.
    private func curve(_ name: String, _ part: (PlottedHours.Hour) -> Double?) -> String {
        var runs: [[String]] = [[]]
        for (index, hour) in plotted.hours.enumerated() {
            if let part = part(hour) {
                runs[runs.count - 1].append("\(Self.number(x(index) + step / 2)),\(Self.number(y(part)))")
            } else if runs.last?.isEmpty == false {
                runs.append([])
            }
        }
        return runs.filter { $0.count > 1 }.map { "<polyline class=\"\(name) line\" points=\"\($0.joined(separator: " "))\"/>" }
            .joined(separator: "\n")
    }

    private func rectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ name: String) -> String {
        "<rect class=\"\(name)\" x=\"\(Self.number(x))\" y=\"\(Self.number(y))\" width=\"\(Self.number(width))\" height=\"\(Self.number(height))\"/>"
    }

    private func text(_ words: String, _ x: Double, _ y: Double, _ name: String) -> String {
        "<text class=\"\(name)\" x=\"\(Self.number(x))\" y=\"\(Self.number(y))\">\(Self.escaped(words))</text>"
    }

    private static func number(_ value: Double) -> String { StormReason.tenths(value) }

    private static func escaped(_ text: String) -> String { text.escapedForMarkup(limit: 200) }
}

extension StringProtocol {
    /// On one line, without control characters, as the text or an attribute of HTML or XML.
    package func escapedForMarkup(limit: Int) -> String {
        let entities: [Character: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"]
        return singleLine(limit: limit).map { entities[$0] ?? String($0) }.joined()
    }
}
