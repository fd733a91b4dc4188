import Foundation
import Glibc
import StormyWeather

/// Draws pictures as PNGs with Debian's cairo.
///
/// The library is loaded when a PNG is asked for: linked, it would cost every start some milliseconds, and everybody's build a package.
package enum CairoPicture {
    /// Why there is no PNG.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Read as they are on light and on dark: a PNG cannot ask which it is.
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

    /// Twice the size of the drawing: screens of today have the points for it.
    private static let scale = 2.0

    /// - Throws: ``Failure`` where the library is not installed.
    package static func png(of picture: ForecastPicture) throws(Failure) -> Data {
        try png(of: picture.shapes, width: ForecastPicture.size.width, height: ForecastPicture.size.height)
    }

    static func png(of shapes: [PictureShape], width: Double, height: Double) throws(Failure) -> Data {
        let cairo = try Cairo()
        let (width, height) = (width * scale, height * scale)
        guard let surface = cairo.createSurface(0, Int32(width), Int32(height)), let context = cairo.create(surface) else {
            throw Failure(description: "cairo cannot draw")
        }
        defer {
            cairo.destroy(context)
            cairo.destroySurface(surface)
        }
        cairo.scale(context, scale, scale)
        cairo.setSource(context, 1, 1, 1, 1)
        cairo.paint(context)
        for shape in shapes { draw(shape, context, cairo) }
        let bytes = Bytes()
        let status = cairo.writePNG(
            surface,
            { target, piece, count in
                guard let target, let piece else { return 1 }
                Unmanaged<Bytes>.fromOpaque(target).takeUnretainedValue().data.append(piece, count: Int(count))
                return 0
            }, Unmanaged.passUnretained(bytes).toOpaque())
        guard status == 0, !bytes.data.isEmpty else { throw Failure(description: "cairo cannot write a PNG (\(status))") }
        return bytes.data
    }

    private final class Bytes {
        var data = Data()
    }

    private static func draw(_ shape: PictureShape, _ context: OpaquePointer, _ cairo: Cairo) {
        func use(_ ink: PictureShape.Ink) {
            let (red, green, blue, alpha) = colour(ink)
            cairo.setSource(context, red, green, blue, alpha)
        }
        switch shape {
        case .rectangle(let x, let y, let width, let height, let ink):
            use(ink)
            cairo.rectangle(context, x, y, width, height)
            cairo.fill(context)
        case .line(let points, let ink, let isDashed, let width):
            use(ink)
            cairo.setLineWidth(context, width)
            cairo.setDash(context, [6, 5], isDashed ? 2 : 0, 0)
            for (index, point) in points.enumerated() {
                if index == 0 { cairo.moveTo(context, point.x, point.y) } else { cairo.lineTo(context, point.x, point.y) }
            }
            cairo.stroke(context)
        case .text(let words, let at, let ink, let size, let isBold, let endsThere):
            use(ink)
            cairo.selectFont(context, "sans-serif", 0, isBold ? 1 : 0)
            cairo.setFontSize(context, size)
            var extents = Cairo.TextExtents()
            cairo.textExtents(context, words, &extents)
            cairo.moveTo(context, endsThere ? at.x - extents.advanceX : at.x, at.y)
            cairo.showText(context, words)
        }
    }
}

/// What is called of `libcairo.so.2`. Source: cairo.h of 1.16, whose ABI has been stable since 1.0.
private struct Cairo {
    /// `cairo_text_extents_t`.
    struct TextExtents {
        var (bearingX, bearingY, width, height, advanceX, advanceY) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    }

    typealias Writer = @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<UInt8>?, UInt32) -> Int32
    typealias Plain = @convention(c) (OpaquePointer) -> Void
    typealias OneNumber = @convention(c) (OpaquePointer, Double) -> Void
    typealias TwoNumbers = @convention(c) (OpaquePointer, Double, Double) -> Void
    typealias FourNumbers = @convention(c) (OpaquePointer, Double, Double, Double, Double) -> Void

    let createSurface: @convention(c) (Int32, Int32, Int32) -> OpaquePointer?
    let create: @convention(c) (OpaquePointer) -> OpaquePointer?
    let writePNG: @convention(c) (OpaquePointer, Writer, UnsafeMutableRawPointer) -> Int32
    let setDash: @convention(c) (OpaquePointer, UnsafePointer<Double>, Int32, Double) -> Void
    let selectFont: @convention(c) (OpaquePointer, UnsafePointer<CChar>, Int32, Int32) -> Void
    let showText: @convention(c) (OpaquePointer, UnsafePointer<CChar>) -> Void
    private let measureText: @convention(c) (OpaquePointer, UnsafePointer<CChar>, UnsafeMutableRawPointer) -> Void
    let (destroy, destroySurface, paint, fill, stroke): (Plain, Plain, Plain, Plain, Plain)
    let (setLineWidth, setFontSize): (OneNumber, OneNumber)
    let (scale, moveTo, lineTo): (TwoNumbers, TwoNumbers, TwoNumbers)
    let (setSource, rectangle): (FourNumbers, FourNumbers)

    init() throws(CairoPicture.Failure) {
        guard let library = dlopen("libcairo.so.2", RTLD_NOW) else {
            throw CairoPicture.Failure(
                description:
                    "a PNG is drawn with cairo, which is not installed (Debian: libcairo2); --svg draws the same without it")
        }
        func function<Function>(_ name: String, as: Function.Type = Function.self) throws(CairoPicture.Failure) -> Function {
            guard let address = dlsym(library, name) else {
                throw CairoPicture.Failure(description: "the cairo that is installed has no \(name)")
            }
            return unsafeBitCast(address, to: Function.self)
        }
        createSurface = try function("cairo_image_surface_create")
        create = try function("cairo_create")
        writePNG = try function("cairo_surface_write_to_png_stream")
        setDash = try function("cairo_set_dash")
        selectFont = try function("cairo_select_font_face")
        showText = try function("cairo_show_text")
        measureText = try function("cairo_text_extents")
        (destroy, destroySurface) = (try function("cairo_destroy"), try function("cairo_surface_destroy"))
        (paint, fill, stroke) = (try function("cairo_paint"), try function("cairo_fill"), try function("cairo_stroke"))
        (setLineWidth, setFontSize) = (try function("cairo_set_line_width"), try function("cairo_set_font_size"))
        scale = try function("cairo_scale")
        (moveTo, lineTo) = (try function("cairo_move_to"), try function("cairo_line_to"))
        (setSource, rectangle) = (try function("cairo_set_source_rgba"), try function("cairo_rectangle"))
    }

    func textExtents(_ context: OpaquePointer, _ words: String, _ extents: inout TextExtents) {
        withUnsafeMutablePointer(to: &extents) { measureText(context, words, UnsafeMutableRawPointer($0)) }
    }
}
