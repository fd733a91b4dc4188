import Testing

@testable import PhotoLocations

/// Tests places in many forms: with spelled units and hemispheres, as codes, in grids, and in links of maps. Similar texts that
/// are not places are not changed.
@Suite struct CoordinateSpellingTests {
    static let places = [
        "47 deg 22 min 12.34 sec N, 8 deg 32 min 56.78 sec E",
        "47 degrees 22 minutes 12.34 seconds North, 8 degrees 32 minutes 56.78 seconds East",
        "47 degrees 22.2056 minutes north, 8 degrees 32.9463 minutes east",
        "472212.34N 0083256.78E", "472212N 0083256E", "4722.2056N 00832.9463E", "4722.2056N, 00832.9463E",
        "N4722.2056 E00832.9463", "47.370094° North, 8.549106° East", "47.370094 North 8.549106 East",
        "47.370094 north, 8.549106 east", "North 47.370094 East 8.549106", "47.370094 degrees north, 8.549106 degrees east",
        "Nord 47.370094 Ost 8.549106", "47.370094° Nord, 8.549106° Ost", "47.370094 Nord, 8.549106 Est",
        "47° 22' 12.34'' nördlicher Breite, 8° 32' 56.78'' östlicher Länge", "47.370094° nördl. Br., 8.549106° östl. L.",
        "47.370094°, 8.549106°", "GPSLatitude 47, 22, 12.34", "WGS84: 47.370094 8.549106", "WGS-84 47.370094 8.549106",
        "EPSG:4326 47.370094 8.549106", "ICBM 47.370094, 8.549106", "<meta name=\"ICBM\" content=\"47.370094, 8.549106\">",
        "<meta name=\"geo.position\" content=\"47.370094;8.549106\">", "Lat: 473700940 Lon: 85491060",
        "https://www.google.com/maps/dir/?api=1&origin=47.370094,8.549106&destination=47.370094,8.549106",
        "https://maps.google.com/maps/api/staticmap?center=47.370094,8.549106&zoom=12&markers=47.370094,8.549106",
        "https://www.google.com/maps/@?api=1&map_action=pano&viewpoint=47.370094,8.549106",
        "google.navigation:q=47.370094,8.549106", "https://maps.apple.com/?near=47.370094,8.549106",
        "https://maps.apple/p/47.370094,8.549106",
        "https://www.bing.com/maps/?v=2&cp=47.370094~8.549106&sp=point.47.370094_8.549106_X",
        "https://bing.com/maps/default.aspx?where1=47.370094,8.549106",
        "https://map.qq.com/?type=marker&pointx=8.549106&pointy=47.370094",
        "https://uri.amap.com/marker?position=8.549106,47.370094&name=a",
        "https://api.map.baidu.com/marker?location=47.370094,8.549106", "https://map.baidu.com/@951549.15,5978370.33,19z",
        "https://yandex.com/maps/?rtext=47.370094,8.549106~47.370094,8.549106",
        "https://www.strava.com/heatmap#14.00/8.549106/47.370094/hot/all",
        "https://geohack.toolforge.org/geohack.php?params=47_22_12.34_N_8_32_56.78_E",
        "https://geohack.toolforge.org/geohack.php?params=47.370094;8.549106",
        "https://map.geo.admin.ch/?lang=de&E=2683456.12&N=1247123.45&zoom=8",
    ]

    static let codes = [
        "https://what3words.com/filled.count.soap", "https://w3w.co/filled.count.soap", "///filled.count.soap",
        "what3words: filled.count.soap", "w3w: ///filled.count.soap", "https://plus.codes/8FVC9GXX+XP",
        "https://www.google.com/maps/place/8FVC9GXX%2BXP", "8FVC9GXX+XPG", "Plus code: 8FVC9GXX+XP", "plus code 9GXX+XP Zurich",
        "https://plus.codes/9GXX+XP,Zurich", "MGRS: 32T MT 65937 46605", "MGRS 32TMT6593746605", "mgrs=32TMT6593746605",
        "UTM: 32T 465937 5246605", "UTM 32N 465937 5246605", "UTM zone 32T E465937 N5246605", "UTM 32T 465937mE 5246605mN",
        "Geohash: u0qj9bqh2", "geohash=u0qj9bqh2", "http://geohash.org/u0qj9bqh2", "Maidenhead: JN47GI58",
        "QTH locator: JN47GI58",
        "CH1903: 683000 / 247000", "LV95: 2683456.12, 1247123.45", "LV95 2683456 1247123", "OSGB TQ 30080 80370",
    ]

    static let others = [
        "12 min 30 sec N", "5 degrees warmer in the north", "turned 45 degrees east", "heading 270 degrees west",
        "north face 12.5 m", "North 12", "12 North Street", "East 17th Street", "West 42 St.", "South by Southwest 2024",
        "il est 12.50", "Il est 8.30 h", "C'est 12,50 EUR", "5 Ost 3", "Ost 3, Nord 4", "forest 47.370094", "Western Digital 4.0",
        "30 seconds at f/2.8", "1 second", "5 min 12.5 sec exposure", "90 degrees", "20.5 degrees C", "360 degree panorama",
        "180 degrees panorama, 12 shots", "utm_source=20240501&utm_id=12345678", "utm_campaign=32T465937", "UTM 2024-05-01",
        "UTM firewall 10.20.30.40", "LV 95", "CH 1903", "QTH", "locator 12", "Locator: A12345", "geohash of a file",
        "geohash: 2024-05-01", "w3w.example", "file:///usr/share/doc.txt", "file:///a/b.c.d", "https:///foo.bar.baz", "///",
        "//// one.two.three", "/// summary", "what3words is an app", "plus code review", "C++ code+10", "A+", "ISO 100+2",
        "SN 12345678+22", "12345678+901", "GTX23456+78", "8+8", "QQQQQQQQ+QQ", "Model 2345678X+2A", "a plus codec 2+2",
        "near 12.5, 13.5", "origin 0,0", "marker 3.5", "Origin: 1.5, 2.5", "markers: 12, 15", "viewpoint 3", "where1=12",
        "near infrared 850.1234 nm", "mark 12.50 EUR", "mark 3.1234 4.1234x", "wgs", "WGS84", "WGS 84", "EPSG:4326", "ICBM",
        "47.370094°", "FOV 47.37°, 8.54°", "pitch 1.2345° only", "yaw 12.5°, pitch 3.1°, roll 0.2°", "12.3456°C, 23.4567°C",
        "1234.5678N 99999.1234E", "123456N", "123456 N 1234567 m", "12.34N 5.67m", "9999N 99999E", "4722N", "CH-8001 N 47",
        "5D2'", "Canon 5D 22", "3D22 printed", "EOS 5D2's", "DC 5D12'", "version 5D12.3", "2D3'",
        "https://apple.com/iphone-15.50/12.75", "https://bing.com/12.55/13.55",
        "https://example.ch/12.55/13.55", "https://maps.example.com/12.55/13.55", "https://www.strava.com/activities/12345678",
        "https://komoot.com/tour/12345.6", "params=1_2_3", "Shutter 1/250, aperture f/5.6, ISO 400", "24.0-70.0 mm f/2.8",
        "GPSLatitude", "Latitude", "Longitude E", "$100, $200, $8N467E,", "$G", "Total: $12.50, $13.75", "Lat:", "lat 2024",
        "3840x2160 59.94 fps", "HDR 10+5G", "DTS:X 7.1+4", "H.264+AAC", "2024-05-01 12:00:00+02:00", "+1 (555) 010-9999",
        "DJI FC3582 1.00.0100", "Snapdragon 8CGX2345", "sRGB IEC61966-2.1", "Exif 2.32", "White 5500K +2", "EV +0.3 -1.7",
        "crop 1.6x, 35 mm equiv 38.4", "chapter 12 section 8 north", "Seite 5, Süd 3", "second 12, minute 5", "8 sec. later",
    ]

    @Test(arguments: places + codes) func `the numbers and words of a place become spaces`(_ text: String) {
        let parts = [
            "370094", "549106", "12.34", "56.78", "2056", "9463", "2212", "473700", "854910", "filled", "count", "9GXX", "65937",
            "465937", "5246605", "u0qj", "JN47", "951549", "683", "247", "30080", "22_12",
        ]
        for text in [text, "Hail storm. \(text) (evening)"] {
            let result = CoordinateText.cleaned(text)
            #expect(!parts.contains { result.contains($0) }, "\(result)")
        }
    }

    @Test(arguments: others) func `a text of another kind stays`(_ text: String) {
        for text in [text, "Hail storm. \(text) (evening)"] { #expect(CoordinateText.cleaned(text) == text) }
    }
}
