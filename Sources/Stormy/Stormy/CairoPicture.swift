import CCairo
import Foundation
import StormyWeather

/// Draws pictures as PNG with Debian's library cairo.
///
/// The library is loaded when a PNG is requested. If Stormy were linked with the library, every start would take some
/// milliseconds longer, and every build would need cairo's package.
package enum CairoPicture {
    /// The reason why a PNG cannot be drawn.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Colours that are readable on light and on dark pages, because a PNG cannot detect the page's appearance.
    private static func colour(_ ink: PictureShape.Ink) -> (Double, Double, Double, Double) {
        switch ink {
        case .storm: (0.78, 0.16, 0.16, 0.18)
        case .doubt: (0.98, 0.66, 0.15, 0.18)
        case .grid: (0.87, 0.87, 0.87, 1)
        case .rain: (0.08, 0.40, 0.75, 1)
        case .gusts: (0, 0.51, 0.56, 1)
        case .limit: (0.78, 0.16, 0.16, 1)
        case .warm: (0.43, 0.30, 0.25, 1)
        case .text: (0.13, 0.13, 0.13, 1)
        case .quiet: (0.4, 0.4, 0.4, 1)
        }
    }

    /// The number of pixels in the PNG for each unit of the drawing. The value is above 1, because many screens have a high
    /// resolution.
    private static let scale = 2.0

    /// - Throws: ``Failure`` if the library is not installed.
    package static func png(of picture: ForecastPicture) throws(Failure) -> Data {
        try png(of: picture.shapes, width: ForecastPicture.size.width, height: ForecastPicture.size.height)
    }

    static func png(of shapes: [PictureShape], width: Double, height: Double) throws(Failure) -> Data {
        let cairo = try loaded.get()
        let (width, height) = (width * scale, height * scale)
        guard let surface = cairo.image_surface_create(0, Int32(width), Int32(height)), let context = cairo.create(surface) else {
            throw Failure(description: "cairo cannot draw")
        }
        defer {
            cairo.destroy(context)
            cairo.surface_destroy(surface)
        }
        cairo.scale(context, scale, scale)
        cairo.set_source_rgba(context, 1, 1, 1, 1)
        cairo.paint(context)
        for shape in shapes { draw(shape, context, cairo) }
        let bytes = Bytes()
        let status = cairo.surface_write_to_png_stream(
            surface,
            { target, piece, count in
                guard let target, let piece else { return 1 }
                Unmanaged<Bytes>.fromOpaque(target).takeUnretainedValue().data.append(piece, count: Int(count))
                return 0
            }, Unmanaged.passUnretained(bytes).toOpaque())
        guard status == 0, !bytes.data.isEmpty else { throw Failure(description: "cairo cannot write a PNG (\(status))") }
        return bytes.data
    }

    private static let loaded: Result<ccairo_functions, Failure> = {
        let functions = UnsafeMutablePointer<ccairo_functions>.allocate(capacity: 1)
        defer { functions.deallocate() }
        guard let missing = ccairo_load(functions).map({ String(cString: $0) }) else { return .success(functions.pointee) }
        let why =
            missing.hasPrefix("lib")
            ? "a PNG needs cairo, which is not installed (Debian: libcairo2). --svg draws the same picture without cairo"
            : "the installed version of cairo has no function \(missing)"
        return .failure(Failure(description: why))
    }()

    private final class Bytes {
        var data = Data()
    }

    private static func draw(_ shape: PictureShape, _ context: OpaquePointer, _ cairo: ccairo_functions) {
        func use(_ ink: PictureShape.Ink) {
            let (red, green, blue, alpha) = colour(ink)
            cairo.set_source_rgba(context, red, green, blue, alpha)
        }
        switch shape {
        case .rectangle(let x, let y, let width, let height, let ink):
            use(ink)
            cairo.rectangle(context, x, y, width, height)
            cairo.fill(context)
        case .line(let points, let ink, let isDashed, let width):
            use(ink)
            cairo.set_line_width(context, width)
            cairo.set_dash(context, [6, 5], isDashed ? 2 : 0, 0)
            for (index, point) in points.enumerated() {
                if index == 0 { cairo.move_to(context, point.x, point.y) } else { cairo.line_to(context, point.x, point.y) }
            }
            cairo.stroke(context)
        case .text(let words, let at, let ink, let size, let isBold, let endsThere):
            use(ink)
            cairo.select_font_face(context, "sans-serif", 0, isBold ? 1 : 0)
            cairo.set_font_size(context, size)
            var extents = ccairo_text_extents()
            cairo.text_extents(context, words, &extents)
            cairo.move_to(context, endsThere ? at.x - extents.advance_x : at.x, at.y)
            cairo.show_text(context, words)
        }
    }
}
