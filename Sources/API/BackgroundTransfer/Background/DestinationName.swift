import Foundation

/// The file name that an app chose for a download.
enum DestinationName {
    /// Throws an error if the file name is too long for the file system. Without this check, the download would fail after the
    /// last byte.
    ///
    /// - Throws: `URLError.Code.cannotCreateFile`.
    static func check(_ destination: URL?) throws {
        var information = stat()
        guard let path = destination?.path, lstat(path, &information) != 0, errno == ENAMETOOLONG
        else { return }
        throw URLError(
            .cannotCreateFile,
            userInfo: [NSLocalizedDescriptionKey: "the name is too long for the file system; choose a shorter one"])
    }
}
