import BackgroundCommands
import Foundation
import StormyWeather

/// A self-contained HTML page without scripts, fonts or network requests. All texts in the page are escaped.
struct ReportPage {
    struct Place {
        let name: String
        /// Sentences about the expected weather.
        let sentences: [String]
        /// An SVG picture of the forecast. `nil` if there is no forecast.
        let picture: String?
    }

    struct Storm {
        let place: String
        let time: String
        /// The reasons for the storm, with their sources.
        let reasons: [String]
        let end: String
    }

    struct Transfer {
        let name: String
        let state: String
        /// A text: the proof that the server has the file, the problem of the transfer, or the address of the transfer.
        let place: String
        let isTrouble: Bool
    }

    struct Day {
        let name: String
        let wakes: [(time: String, wake: WakeReport)]
    }

    let madeAt: String
    /// The reason why the page is incomplete. `nil` if the page is complete.
    let trouble: String?
    let next: String
    let places: [Place]
    let storms: [Storm]
    let days: [Day]
    let transfers: [Transfer]
    /// The number of all transfers. The table shows only the newest transfers.
    let transferCount: Int
    let findings: [DoctorFinding]
    let guarantees: GuaranteesReport
    let credits: [String]

    var html: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>Stormy: report</title>
        <style>
        \(Self.style)
        </style>
        </head>
        <body>
        <a class="skip" href="#places">To the places</a>
        <header><h1>Stormy</h1>\(trouble.map { "<p role=\"alert\"><strong>\(Self.escaped($0))</strong></p>" } ?? "")<p>\(Self.escaped(next))</p><p class="quiet">\(Self.escaped(madeAt))</p></header>
        <nav aria-label="Parts of this page"><a href="#places">Places</a> <a href="#storms">Storms</a> <a href="#wakes">Launches</a>
        <a href="#transfers">Transfers</a> <a href="#desktop">This desktop</a></nav>
        <main>
        \(section("places", "Places", places.isEmpty ? empty("No place is configured. Add a place: stormy place add Sydney") : places.map(place).joined()))
        \(section("storms", "Storms of the last thirty days", storms.isEmpty ? empty("None.") : table(["Place", "When", "Source", "Result"], storms.map(row))))
        \(section("wakes", "Launches of the last thirty days", days.isEmpty ? empty("Nothing has run yet.") : strip + days.map(day).joined()))
        \(section("transfers", transferTitle, transfers.isEmpty ? empty("None.") : table(["What", "State", "Where"], transfers.map(row))))
        \(section("desktop", "Capabilities of this desktop", table(["", "What", "State"], findings.map(row)) + guaranteeTable))
        </main>
        <footer><p class="quiet">\(Self.escaped("Forecasts and warnings: " + credits.joined(separator: ", ") + "."))</p></footer>
        </body>
        </html>

        """
    }

    // MARK: Parts

    private var transferTitle: String {
        transferCount > transfers.count ? "Transfers: the newest \(transfers.count) of \(transferCount)" : "Transfers"
    }

    private func section(_ id: String, _ title: String, _ body: String) -> String {
        "<section id=\"\(id)\" aria-labelledby=\"\(id)-title\"><h2 id=\"\(id)-title\">\(Self.escaped(title))</h2>\n\(body)\n</section>"
    }

    private func empty(_ words: String) -> String { "<p>\(Self.escaped(words))</p>" }

    private func place(_ place: Place) -> String {
        let sentences = place.sentences.map { "<p>\(Self.escaped($0))</p>" }.joined(separator: "\n")
        return "<article><h3>\(Self.escaped(place.name))</h3>\n\(place.picture ?? "")\n\(sentences)</article>\n"
    }

    private func table(_ heads: [String], _ rows: [String]) -> String {
        let cells = heads.map { "<th scope=\"col\">\(Self.escaped($0))</th>" }.joined()
        return
            "<div class=\"wide\"><table><thead><tr>\(cells)</tr></thead>\n<tbody>\n\(rows.joined(separator: "\n"))\n</tbody></table></div>"
    }

    private func row(_ storm: Storm) -> String {
        cells([storm.place, storm.time, storm.reasons.joined(separator: "; "), storm.end])
    }

    private func row(_ transfer: Transfer) -> String {
        cells([transfer.name, transfer.state, transfer.place], class: transfer.isTrouble ? "bad" : nil)
    }

    private func row(_ finding: DoctorFinding) -> String {
        let sign =
            switch finding.status {
            case .ok: "✓ well"
            case .warning: "! warning"
            case .failed: "✗ failed"
            }
        let end = finding.message.hasSuffix(".") ? "" : "."
        let help = finding.fix.map { "\(end) To fix this: \($0.command)" } ?? ""
        return cells([sign, finding.check, finding.message + help], class: finding.status == .ok ? nil : "bad")
    }

    /// The HTML table of the capabilities of this desktop. If the desktop does not have a capability, this is not a fault, so no
    /// row is marked as bad.
    private var guaranteeTable: String {
        "\n<h3>\(Self.escaped(GuaranteesReport.heading))</h3>\n"
            + table(
                ["", "What", "Why"],
                guarantees.rows.map { row in
                    let help = row.help.map { " To fix this: \($0)" } ?? ""
                    return cells(["\(row.mark) \(row.verdict)", row.title, row.reason + help])
                })
    }

    private func cells(_ texts: [String], class name: String? = nil) -> String {
        "<tr\(name.map { " class=\"\($0)\"" } ?? "")>" + texts.map { "<td>\(Self.escaped($0))</td>" }.joined() + "</tr>"
    }

    /// A row of boxes, one for each day. The text below the row repeats the content of each box.
    private var strip: String {
        let boxes = days.reversed().map { day -> String in
            let failures = day.wakes.count { $0.wake.outcome == .failed }
            let name = failures > 0 ? "bad" : "good"
            let words =
                "\(day.name): \(Self.launches(day.wakes.count))" + (failures > 0 ? ", \(failures) not completed" : "")
            return "<li class=\"\(name)\" title=\"\(Self.escaped(words))\"><span>\(Self.escaped(words))</span></li>"
        }
        return "<ol class=\"strip\">\(boxes.joined())</ol>\n"
    }

    /// The details of a day. The details of the newest day are expanded.
    private func day(_ day: Day) -> String {
        let wakes = day.wakes.map { time, wake in
            "<li class=\"\(wake.outcome == .failed ? "bad" : "")\">\(Self.escaped("\(time) \(wake.name): \(wake.words)"))</li>"
        }
        let isOpen = days.first?.name == day.name ? " open" : ""
        return
            "<details\(isOpen)><summary>\(Self.escaped(day.name)): \(Self.launches(day.wakes.count))</summary><ul>\n\(wakes.joined(separator: "\n"))\n</ul></details>\n"
    }

    // MARK: Text

    private static func launches(_ number: Int) -> String { "\(number) launch\(number == 1 ? "" : "es")" }

    private static func escaped(_ text: String) -> String { text.escapedForMarkup(limit: 2000) }

    private static let style = """
        :root { color-scheme: light dark; --ink: #222; --quiet: #666; --paper: #fff; --edge: #ddd; --bad: #c62828; --good: #2e7d32 }
        @media (prefers-color-scheme: dark) {
        :root { --ink: #eee; --quiet: #aaa; --paper: #1e1e1e; --edge: #444; --bad: #ef9a9a; --good: #81c784 } }
        body { font: 16px/1.5 sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 0 auto; padding: 1rem }
        h1 { margin-bottom: 0 } h2 { border-bottom: 1px solid var(--edge); margin-top: 2.5rem } .quiet { color: var(--quiet) }
        a { color: inherit } nav a { margin-right: 1rem } .skip { position: absolute; left: -100rem } .skip:focus { position: static }
        article svg { width: 100%; height: auto } .wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
        th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--edge) }
        td { overflow-wrap: break-word; max-width: 24rem; min-width: 4rem } .bad { color: var(--bad) } summary { cursor: pointer }
        .strip { display: flex; flex-wrap: wrap; gap: 4px; padding: 0; list-style: none }
        .strip li { width: 1.4rem; height: 1.4rem; border-radius: 4px; overflow: hidden }
        .strip .good { background: var(--good) } .strip .bad { background: var(--bad) } .strip span { opacity: 0 }
        """
}
