import CLibnotify
import Foundation

/// A picture as plain pixels, in the form that notification servers accept. With this form, a server does not have to read and
/// decode a file.
package struct NoticePixels: Sendable, Equatable {
    package let width: Int
    package let height: Int
    /// The number of bytes per pixel: 3, or 4 with an alpha channel.
    package let channels: Int
    /// The bytes of the pixels, row by row and without gaps.
    package let bytes: [UInt8]

    /// The maximum width and height in pixels. Servers show pictures in a smaller size.
    package static let maximumSide = 256
    /// The maximum width and height of a picture file in pixels. The size is limited because a decoder needs memory for all
    /// pixels.
    private static let maximumFileSide: gint = 12_000

    private init?(width: Int, height: Int, channels: Int, bytes: [UInt8]) {
        let sides = 1...Self.maximumSide
        guard sides.contains(width), sides.contains(height), (3...4).contains(channels), bytes.count == width * height * channels
        else { return nil }
        (self.width, self.height, self.channels, self.bytes) = (width, height, channels, bytes)
    }

    /// Decodes a file and rotates the picture to the orientation of the camera. Returns `nil` if the file is not a picture or is
    /// too large.
    ///
    /// The library gdk-pixbuf decodes the file, because libnotify also needs this library. A file from an unknown source may
    /// crash a decoder, so an agent decodes pictures in another process.
    package init?(file: String) {
        var (width, height): (gint, gint) = (0, 0)
        guard gdk_pixbuf_get_file_info(file, &width, &height) != nil, (1...Self.maximumFileSide).contains(width),
            (1...Self.maximumFileSide).contains(height)
        else { return nil }
        let side = gint(Self.maximumSide)
        let isLarge = width > side || height > side
        let loaded =
            isLarge ? gdk_pixbuf_new_from_file_at_scale(file, side, side, 1, nil) : gdk_pixbuf_new_from_file(file, nil)
        guard let loaded else { return nil }
        defer { g_object_unref(UnsafeMutableRawPointer(loaded)) }
        guard let upright = gdk_pixbuf_apply_embedded_orientation(loaded) else { return nil }
        defer { g_object_unref(UnsafeMutableRawPointer(upright)) }
        let (columns, rows) = (Int(gdk_pixbuf_get_width(upright)), Int(gdk_pixbuf_get_height(upright)))
        let (channels, stride) = (Int(gdk_pixbuf_get_n_channels(upright)), Int(gdk_pixbuf_get_rowstride(upright)))
        guard let pixels = gdk_pixbuf_read_pixels(upright) else { return nil }
        let bytes = (0..<rows).flatMap { row in
            UnsafeBufferPointer(start: pixels + row * stride, count: columns * channels)
        }
        self.init(width: columns, height: rows, channels: channels, bytes: bytes)
    }

    /// The picture as a single line of text, for another process.
    package var line: String { "\(width) \(height) \(channels) \(Data(bytes).base64EncodedString())" }

    /// Creates a picture from a ``line``. Returns `nil` if the line is invalid.
    package init?(line: String) {
        let parts = line.split(separator: " ")
        guard parts.count == 4, let width = Int(parts[0]), let height = Int(parts[1]), let channels = Int(parts[2]),
            let bytes = Data(base64Encoded: String(parts[3]))
        else { return nil }
        self.init(width: width, height: height, channels: channels, bytes: Array(bytes))
    }

    /// The value of the hint "image-data" as a floating reference of GLib.
    var variant: OpaquePointer? {
        let content = bytes.withUnsafeBytes { g_bytes_new($0.baseAddress, gsize($0.count)) }
        defer { g_bytes_unref(content) }
        let type = g_variant_type_new("ay")
        defer { g_variant_type_free(type) }
        var parts: [OpaquePointer?] = [
            g_variant_new_int32(gint(width)), g_variant_new_int32(gint(height)), g_variant_new_int32(gint(width * channels)),
            g_variant_new_boolean(channels == 4 ? 1 : 0), g_variant_new_int32(8), g_variant_new_int32(gint(channels)),
            g_variant_new_from_bytes(type, content, 1),
        ]
        return g_variant_new_tuple(&parts, gsize(parts.count))
    }
}
