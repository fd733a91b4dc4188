extension LocationSearch {
    /// Searches all bytes of this file for locations.
    ///
    /// - Parameter block: The name of the bytes in messages. `nil` to use the name of the format.
    /// - Returns: `false` if no parser supports the format.
    @discardableResult
    func cleanFile(_ block: String?) -> Bool {
        let view = ByteView(self)
        let isKnown = Container.clean(view, block)
        Trailer(view).cleanFromEnd()
        if isKnown {
            // The remaining bytes are also searched: gaps that no parser has read, and blocks after damaged blocks.
            var covered = ProtectedRanges()
            for range in pixels { covered.add(range) }
            covered.prepare()
            for gap in covered.gaps(0..<source.count) where gap.count > 8 {
                OpaqueBytes(view.part(gap.lowerBound, gap.count), block ?? LocationSearch.unnamed).clean()
            }
        } else {
            OpaqueBytes(view, block ?? LocationSearch.unnamed).clean()
        }
        if !overwrites.all.isEmpty || !credentials.isEmpty { removeSignatures() }
        return isKnown
    }
}

/// Chooses the parser for a file by its first bytes.
enum Container {
    /// - Parameter block: The name of the bytes in messages. `nil` to use the name of the format.
    /// - Returns: `false` if no parser supports the format.
    static func clean(_ view: ByteView, _ block: String?) -> Bool {
        guard let first = view.bytes(0, min(16, view.count)) else { return false }
        func has(_ text: String) -> Bool { first.starts(with: text.utf8) }
        if first.starts(with: [0xFF, 0xD8, 0xFF]) {
            let end = JPEGFile(view, block ?? "JPEG").clean()
            if end > 0 { Trailer(view.from(end)).clean() }
            return end > 0
        }
        if first.starts(with: PNGFile.signature) {
            PNGFile(view, block ?? "PNG").clean()
            return true
        }
        if has("RIFF"), first.count >= 12 {
            RIFFFile(view, block ?? view.name(8)).clean()
            return true
        }
        if has("GIF87a") || has("GIF89a") { return GIFFile(view, block ?? "GIF").clean() }
        if BoxFile.isPlausible(view) {
            BoxFile(view, block ?? "the film or picture").clean()
            return true
        }
        if Codestream.isPlausible(at: 0, in: view) {
            let end = Codestream(view, block ?? "JPEG 2000").clean()
            if end > 0, end < view.count { Trailer(view.from(end)).clean() }
            return true
        }
        if block == nil, first.starts(with: [0xFF, 0x0A]) {
            holdJPEGXL(view)
            return true
        }
        if first.starts(with: [0x76, 0x2F, 0x31, 0x01]) {
            holdOpenEXR(view)
            return false
        }
        if first.starts(with: MatroskaFile.start) {
            // The caller also searches the other bytes of the film, because the result is `false`.
            MatroskaFile(view, block ?? "the film").checkTexts()
            return false
        }
        if var raw = RawFile(view, block ?? "raw file") {
            raw.clean()
            return true
        }
        if var tiff = TIFFFile(view, block ?? "TIFF"), tiff.hasKnownVersion || tiff.isPlausible {
            tiff.clean()
            return true
        }
        return false
    }

    /// Fails the search if an attribute of an OpenEXR file is a location. An attribute has a name, a type, a size and a value.
    /// Readers use a location even if its type or size is damaged.
    private static func holdOpenEXR(_ view: ByteView) {
        let header = (view.bytes(0, min(view.count, 1 << 20)) ?? []).map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        for name in ["latitude", "longitude"] {
            guard let found = header.firstRange(of: Array("\(name)\0".utf8)),
                let type = view.find([0], from: found + name.utf8.count + 1),
                let value = view.bytes(type + 5, 4), value.contains(where: { $0 != 0 })
            else { continue }
            view.search.fail(.unproven(block: "attribute \(name) of OpenEXR"))
        }
    }

    /// Fails the search if a location is found in a JPEG XL codestream without boxes. Such a codestream contains no metadata, and
    /// only a decoder finds its end. A found location is after the end of the codestream, or occurs in coded data by chance. In
    /// both cases, the photo is not sent.
    private static func holdJPEGXL(_ view: ByteView) {
        let name = "data in the JPEG XL picture"
        OpaqueBytes(view, name).clean()
        let compressed = ["Exif", "xml ", "jumb"].contains { view.find(Array("brob\($0)".utf8)) != nil }
        if view.isTouched || compressed { view.search.fail(.unproven(block: view.touchedBlock ?? name)) }
        view.recordPixels(0, view.count)
    }
}
