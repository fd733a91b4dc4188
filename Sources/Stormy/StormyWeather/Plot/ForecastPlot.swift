import Foundation

/// The next hours as lines of text. An hour has three columns. If the hours do not fit on one line, the plot has several lines.
package struct ForecastPlot {
    /// The style of the text, which depends on the abilities of the terminal.
    package enum Style: Sendable { case coloured, plain, ascii }

    private let plotted: PlottedHours
    private let style: Style
    private let columns: Int

    private static let labelWidth = 8
    private static let blocks = Array("▁▂▃▄▅▆▇█")
    private static let ramp = Array("_.-=+*#@")

    /// - Parameter columns: the number of columns of the terminal. No line of the plot has more columns.
    package init(_ plotted: PlottedHours, columns: Int, style: Style) {
        (self.plotted, self.style) = (plotted, style)
        self.columns = columns
    }

    package var lines: [String] {
        guard !plotted.hours.isEmpty else { return ["The forecast has no future hours."] }
        // No space is needed after the last cell.
        let size = max(1, (columns - Self.labelWidth + 1) / 3)
        let parts = stride(from: 0, to: plotted.hours.count, by: size).map {
            Array(plotted.hours[$0..<min($0 + size, plotted.hours.count)])
        }
        return parts.enumerated().flatMap { index, part in (index == 0 ? [] : [""]) + block(part) } + legend
    }

    private func block(_ hours: [PlottedHours.Hour]) -> [String] {
        let halves = hours.enumerated().compactMap { plotted.half($0.element, isFirst: $0.offset == 0) }
        var lines = (halves.isEmpty ? [] : [line("", halves)]) + [line("", hours.map(plotted.label))]
        if hours.contains(where: { $0.mark != .none }) {
            lines.append(
                line(
                    "storm",
                    hours.map { $0.mark == .storm ? painted("!!", "31;1") : $0.mark == .doubtful ? painted("??", "33") : "" }))
        }
        let rain = max(plotted.mostRain, 4)
        lines.append(line("rain", hours.map { hour in hour.rainMM.map { painted(bar($0, of: rain), "34") } ?? "" }))
        if let most = plotted.mostGusts {
            let gusts = max(most, plotted.gustsLimit)
            lines.append(
                line(
                    "gusts",
                    hours.map { hour in
                        hour.gustsKMH.map { painted(bar($0, of: gusts), $0 >= plotted.gustsLimit ? "31;1" : "36") } ?? ""
                    }))
        }
        if hours.contains(where: { $0.temperatureC != nil }) {
            lines.append(line("degrees", hours.map { hour in hour.temperatureC.map { "\(plotted.units.degrees($0))" } ?? "" }))
        }
        return lines
    }

    /// The explanation of the bars and the marks in the plot.
    private var legend: [String] {
        var words: [String] = []
        words.append("Rain up to \(plotted.units.rain(plotted.mostRain))")
        if let gusts = plotted.mostGusts {
            words.append(
                "gusts up to \(plotted.units.speed(gusts)) (\(plotted.units.speedNumber(plotted.gustsLimit)) or more is a storm)")
        }
        var text = words.joined(separator: ", ") + "; degrees are \(plotted.units.scale)."
        if plotted.hours.contains(where: { $0.mark == .storm }) { text += " !! marks a storm." }
        if plotted.hours.contains(where: { $0.mark == .doubtful }) { text += " ?? marks an hour that does not count as a storm." }
        return [""] + wrapped(text)
    }

    private func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= columns {
                lines[lines.count - 1] += " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    /// Cells have two columns and a space. Escape sequences do not count as columns.
    private func line(_ label: String, _ cells: [String]) -> String {
        let head = label + String(repeating: " ", count: Self.labelWidth - label.count)
        let text = head + cells.map { $0 + String(repeating: " ", count: max(0, 3 - Self.width($0))) }.joined()
        return String(text.reversed().drop { $0 == " " }.reversed())
    }

    private static func width(_ text: String) -> Int {
        guard text.contains("\u{1B}") else { return text.count }
        var (width, isEscape) = (0, false)
        for character in text {
            if character == "\u{1B}" { isEscape = true }
            if !isEscape { width += 1 }
            if isEscape, character == "m" { isEscape = false }
        }
        return width
    }

    private func bar(_ value: Double, of most: Double) -> String {
        guard value > 0, most > 0 else { return style == .ascii ? " " : "·" }
        let signs = style == .ascii ? Self.ramp : Self.blocks
        let index = min(signs.count - 1, Int((value / most * Double(signs.count)).rounded(.up)) - 1)
        return String(repeating: signs[max(0, index)], count: 2)
    }

    private func painted(_ text: String, _ colour: String) -> String {
        style == .coloured && !text.isEmpty ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
    }
}
