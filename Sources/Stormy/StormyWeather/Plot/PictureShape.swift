/// What a picture of a forecast is drawn of, in the order in which it is drawn: the same for every format.
package enum PictureShape: Sendable, Equatable {
    /// What it stands for; a format gives it a colour.
    package enum Ink: String, Sendable, CaseIterable {
        case storm, doubt, grid, rain, gusts, limit, warm, text, quiet
    }

    package struct Point: Sendable, Equatable {
        package var x: Double
        package var y: Double
    }

    /// Filled.
    case rectangle(x: Double, y: Double, width: Double, height: Double, Ink)
    /// Through all points, not filled.
    case line([Point], Ink, isDashed: Bool, width: Double)
    /// - Parameter at: the left end of its base line; with `endsThere` the right one.
    case text(String, at: Point, Ink, size: Double, isBold: Bool, endsThere: Bool)
}
