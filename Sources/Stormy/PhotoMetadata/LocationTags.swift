/// Which metadata says where a picture was taken. Tags by exiv2's names: `Exif.GPSInfo.GPSLatitude`, `Xmp.photoshop.City`,
/// `Iptc.Application2.SubLocation`.
///
/// Source of the rule: Exif 3.0 §4.6.6 (GPS), IPTC Photo Metadata 2023 (location created, location shown, and the older
/// city, state and country), XMP's exif, photoshop and iptcExt schemas; makers' notes by the same words.
package enum LocationTags {
    package static func isLocation(_ tag: String) -> Bool {
        let parts = tag.split(separator: ".", maxSplits: 2)
        guard parts.count == 3 else { return false }
        // The W3C's vocabulary of places (geo:lat, geo:long, geo:alt) has nothing else.
        if parts[1] == "GPSInfo" || parts[1] == "geo" { return true }
        // Inside XMP structures: `LocationCreated[1]/iptcExt:City`.
        return parts[2].lowercased().split { "[]/:".contains($0) }.contains { name in
            !pixelPlaces.contains(String(name))
                && (words.contains { name.contains($0) } || names.contains(String(name)) || isCity(name))
        }
    }

    /// The structures of XMP that hold a tag and are about a location themselves: of `Xmp.iptcExt.LocationCreated[1]/iptcExt:City`
    /// the `LocationCreated[1]` and the `LocationCreated`.
    static func structures(around tag: String) -> [String] {
        guard tag.hasPrefix("Xmp.") else { return [] }
        return tag.indices.filter { tag[$0] == "[" || tag[$0] == "/" }.map { String(tag[..<$0]) }.filter(isLocation)
    }

    private static let words = ["gps", "latitude", "longitude", "location", "geotag"]

    private static let names: Set<String> = [
        "state", "province", "provincestate", "country", "countrycode", "countryname", "landmark", "worldregion",
    ]

    /// `City`, and the makers' `City2` and `HometownCity`.
    private static func isCity(_ name: Substring) -> Bool {
        name == "city2" || name.hasSuffix("city") && name != "capacity" && name != "opacity"
    }

    /// Places inside the picture, not of the world.
    private static let pixelPlaces: Set<String> = ["subjectlocation", "facelocation", "subjectarea"]
}
