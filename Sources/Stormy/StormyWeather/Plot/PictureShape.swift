/// A shape in the picture of a forecast. Shapes are drawn in their order, and every format uses the same shapes.
package enum PictureShape: Sendable, Equatable {
    /// The meaning of a shape. Each format assigns a colour to each meaning.
    package enum Ink: String, Sendable, CaseIterable {
        case storm, doubt, grid, rain, gusts, limit, warm, text, quiet
    }

    package struct Point: Sendable, Equatable {
        package var x: Double
        package var y: Double
    }

    /// A filled rectangle.
    case rectangle(x: Double, y: Double, width: Double, height: Double, Ink)
    /// A line that connects all points in their order. The area below the line is not filled.
    case line([Point], Ink, isDashed: Bool, width: Double)
    /// - Parameter at: the left end of the base line of the text, or the right end if `endsThere` is `true`.
    case text(String, at: Point, Ink, size: Double, isBold: Bool, endsThere: Bool)
}
