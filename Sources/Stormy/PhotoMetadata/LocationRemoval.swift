import CLibgexiv2

/// Why a picture's metadata could not be cleaned.
package enum LocationRemovalError: Error, Equatable, CustomStringConvertible {
    /// gexiv2 cannot read it: not a picture, damaged, or of a kind it does not know.
    case unreadable(String)
    /// It can be read, and not be written.
    case unwritable(String)
    /// Something was left that should be gone.
    case leftBehind([String])

    /// The system failed, for example the disk. The picture may be cleaned later. exiv2 adds the error number to its message.
    package var isFault: Bool {
        switch self {
        case .unreadable(let why), .unwritable(let why): why.contains("(errno = ")
        case .leftBehind: false
        }
    }

    package var description: String {
        switch self {
        case .unreadable(let why): "its metadata cannot be read (\(why))"
        case .unwritable(let why): "its metadata cannot be changed (\(why))"
        case .leftBehind(let tags): "it still says where it was taken (\(tags.joined(separator: ", ")))"
        }
    }
}

/// Takes out of a picture what says where it was taken; pixels, orientation and everything else stay.
///
/// Runs in a process of its own: a parser of strangers' files must not take an app down with it, and no app loads GLib.
package enum LocationRemoval {
    /// Once, before anything else.
    package static func start() {
        _ = gexiv2_initialize()
        gexiv2_log_set_level(GEXIV2_LOG_LEVEL_MUTE)
    }

    /// Cleans the file in place. Cost: reading it, and writing it anew where something is removed.
    ///
    /// - Returns: what was removed, by exiv2's names; empty: nothing was there, and the file was not touched.
    package static func clean(_ path: String) throws(LocationRemovalError) -> [String] {
        let result = Result { () throws(LocationRemovalError) in try removeTags(from: path) }
        // Also of a file that exiv2 cannot read: other programs may.
        let profiles = RawProfiles.located(in: path)
        guard profiles.isEmpty else { throw .leftBehind(profiles) }
        return try result.get()
    }

    private static func removeTags(from path: String) throws(LocationRemovalError) -> [String] {
        let found = try locationTags(of: path) { metadata, tags throws(LocationRemovalError) in
            // The parts of a structure before the structure.
            for tag in tags.sorted(by: >) { gexiv2_metadata_try_clear_tag(metadata, tag, nil) }
            // Which gexiv2 does not list, and clears only with a value of their own in them.
            for structure in Set(tags.flatMap(LocationTags.structures(around:))).sorted(by: >) {
                gexiv2_metadata_try_set_tag_string(metadata, structure, "-", nil)
                gexiv2_metadata_try_clear_tag(metadata, structure, nil)
            }
            // The pointer to the directory that is gone.
            gexiv2_metadata_try_clear_tag(metadata, "Exif.Image.GPSTag", nil)
            var error: UnsafeMutablePointer<GError>?
            guard gexiv2_metadata_save_file(metadata, path, &error) != 0 else { throw .unwritable(take(error)) }
        }
        guard !found.isEmpty else { return [] }
        let left = try locationTags(of: path)
        guard left.isEmpty else { throw .leftBehind(left) }
        return found
    }

    /// Returns the tags with a location in a picture, or in XMP.
    static func locationTags(in bytes: [UInt8]) throws(LocationRemovalError) -> [String] {
        try locationTags(opening: { gexiv2_metadata_open_buf($0, bytes, bytes.count, $1) })
    }

    /// What says where it was taken; `change` is called when there is something.
    private static func locationTags(
        of path: String, change: ((UnsafeMutablePointer<GExiv2Metadata>, [String]) throws(LocationRemovalError) -> Void)? = nil
    ) throws(LocationRemovalError) -> [String] {
        try locationTags(opening: { gexiv2_metadata_open_path($0, path, $1) }, change: change)
    }

    private static func locationTags(
        opening open: (UnsafeMutablePointer<GExiv2Metadata>, UnsafeMutablePointer<UnsafeMutablePointer<GError>?>) -> gboolean,
        change: ((UnsafeMutablePointer<GExiv2Metadata>, [String]) throws(LocationRemovalError) -> Void)? = nil
    ) throws(LocationRemovalError) -> [String] {
        guard let metadata = gexiv2_metadata_new() else { throw .unreadable("no memory") }
        defer { g_object_unref(UnsafeMutableRawPointer(metadata)) }
        var error: UnsafeMutablePointer<GError>?
        guard open(metadata, &error) != 0 else { throw .unreadable(take(error)) }
        let lists = [
            gexiv2_metadata_get_exif_tags(metadata), gexiv2_metadata_get_xmp_tags(metadata),
            gexiv2_metadata_get_iptc_tags(metadata),
        ]
        // IPTC names come once for each of several values.
        let tags = Set(lists.flatMap { strings($0) }.filter(LocationTags.isLocation)).sorted()
        if !tags.isEmpty, let change { try change(metadata, tags) }
        return tags
    }

    private static func strings(_ list: UnsafeMutablePointer<UnsafeMutablePointer<gchar>?>?) -> [String] {
        guard let list else { return [] }
        defer { g_strfreev(list) }
        var result: [String] = []
        var next = list
        while let text = next.pointee {
            result.append(String(cString: text))
            next += 1
        }
        return result
    }

    private static func take(_ error: UnsafeMutablePointer<GError>?) -> String {
        guard let error else { return "no reason given" }
        defer { g_error_free(error) }
        return String(cString: error.pointee.message)
    }
}
