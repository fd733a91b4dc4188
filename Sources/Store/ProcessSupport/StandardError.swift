import Foundation

/// Standard error of this process. If a text cannot be written, for example because the disk is full, the text is lost.
package enum StandardError {
    /// - Parameter text: the text with its line break.
    package static func write(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) }
}
