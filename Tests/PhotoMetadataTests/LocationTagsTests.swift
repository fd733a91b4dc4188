import Testing

@testable import PhotoMetadata

@Suite struct LocationTagsTests {
    @Test(arguments: [
        "Exif.GPSInfo.GPSLatitude", "Exif.GPSInfo.GPSVersionID", "Exif.Image.GPSTag", "Exif.Panasonic.City2",
        "Exif.Panasonic.Landmark", "Xmp.exif.GPSLongitude", "Xmp.photoshop.City", "Xmp.photoshop.Country", "Xmp.iptc.Location",
        "Xmp.iptc.CountryCode", "Xmp.iptcExt.LocationCreated", "Xmp.iptcExt.LocationShown[1]/iptcExt:City",
        "Xmp.drone-dji.GpsLatitude", "Xmp.geo.lat", "Iptc.Application2.SubLocation", "Iptc.Application2.ProvinceState",
        "Iptc.Application2.CountryName", "Iptc.Application2.LocationName",
    ]) func places(_ tag: String) { #expect(LocationTags.isLocation(tag)) }

    @Test(arguments: [
        "Exif.Image.Orientation", "Exif.Photo.SubjectLocation", "Exif.Photo.DateTimeOriginal", "Exif.Photo.OffsetTimeOriginal",
        "Exif.Image.Artist", "Xmp.dc.creator", "Xmp.xmp.Rating", "Iptc.Application2.Caption", "Exif.Photo.FocalPlaneXResolution",
        "Xmp.photoshop.Credit", "Exif.Canon.Statement", "", "Exif", "Exif.Photo",
    ]) func others(_ tag: String) { #expect(!LocationTags.isLocation(tag)) }
}
