import Foundation

/// The picture of the next hours in a notification. The picture is a square without text, because notification servers show the
/// picture only about 64 pixels wide.
///
/// Rain is shown as bars, gusts as a line with a second line for their limit, and the storm as a red area.
package struct StormThumbnail: Sendable {
    private let plotted: PlottedHours

    /// The width and the height.
    package static let side = 128.0
    private static let margin = 6.0

    package init(_ plotted: PlottedHours) { self.plotted = plotted }

    /// Returns the number of hours that are shown for a storm: the hours until its end and four more hours. The result is at
    /// least 12 and at most 48.
    package static func hours(until end: Date, now: Date) -> Int {
        min(max(Int(end.timeIntervalSince(now) / 3600) + 4, 12), 48)
    }

    package var shapes: [PictureShape] {
        [ground] + storms + rain + limit + gusts
    }

    private var step: Double { (Self.side - 2 * Self.margin) / Double(max(1, plotted.hours.count)) }
    private var bottom: Double { Self.side - Self.margin }

    private func x(_ index: Int) -> Double { Self.margin + Double(index) * step }

    private func y(_ part: Double) -> Double { bottom - min(max(part, 0), 1) * (Self.side - 2 * Self.margin) }

    private var ground: PictureShape {
        .line(
            [.init(x: Self.margin, y: bottom), .init(x: Self.side - Self.margin, y: bottom)], .quiet, isDashed: false, width: 2)
    }

    private var storms: [PictureShape] {
        plotted.hours.enumerated().filter { $0.element.mark == .storm }.map { index, _ in
            .rectangle(x: x(index), y: 0, width: step, height: bottom, .storm)
        }
    }

    /// The bars of rain, which reach to the middle of the square, so that the gusts above the bars are visible.
    private var rain: [PictureShape] {
        let most = max(plotted.mostRain, 4) * 2
        return plotted.hours.enumerated().compactMap { index, hour in
            guard let value = hour.rainMM, value > 0 else { return nil }
            let high = min(y(value / most), bottom - 2)
            return .rectangle(x: x(index) + step * 0.1, y: high, width: step * 0.8, height: bottom - high, .rain)
        }
    }

    private var highest: Double { max(plotted.mostGusts ?? 0, plotted.gustsLimit) * 1.1 }

    private var limit: [PictureShape] {
        guard plotted.mostGusts != nil else { return [] }
        let level = y(plotted.gustsLimit / highest)
        let ends = [PictureShape.Point(x: Self.margin, y: level), .init(x: Self.side - Self.margin, y: level)]
        return [.line(ends, .limit, isDashed: true, width: 2)]
    }

    /// The curve of gusts, with gaps at unknown values.
    private var gusts: [PictureShape] {
        var runs: [[PictureShape.Point]] = [[]]
        for (index, hour) in plotted.hours.enumerated() {
            if let gusts = hour.gustsKMH {
                runs[runs.count - 1].append(.init(x: x(index) + step / 2, y: y(gusts / highest)))
            } else if runs.last?.isEmpty == false {
                runs.append([])
            }
        }
        return runs.filter { $0.count > 1 }.map { .line($0, .gusts, isDashed: false, width: 5) }
    }
}
