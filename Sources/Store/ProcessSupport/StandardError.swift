import Foundation

/// Standard error of this process. If a text cannot be written, for example because the disk is full, the text is lost.
package enum StandardError {
    /// - Parameter text: the text, including the line break at its end.
    package static func write(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) }
}
