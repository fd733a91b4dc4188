import CZlib
import Testing

@testable import PhotoLocations

/// Tests texts that contain the place 47.370094, 8.549106, and similar texts without a location.
@Suite struct CoordinateTextTests {
    static let places = [
        "latitude: 47.370094, longitude: 8.549106", "lat=47.370094,lon=8.549106", "Lat: 47.370094 Lng: 8.549106",
        "LAT 47.370094 LON 8.549106", "lat/lon: 47.370094, 8.549106", "lat 47.370094 long=8.549106",
        "myLat=47.370094;myLng=8.549106",
        "latDeg: 47.370094; lonDeg: 8.549106", "gps: 47.370094, 8.549106", "coords: 47.370094 8.549106",
        "Koordinaten: 47.370094 / 8.549106",
        "geo:47.370094,8.549106", "geo:47.370094,8.549106,408;u=35", "geo:lat=47.370094 geo:lon=8.549106",
        "geo:lat=47.370094", "geo:long=8.549106", "location: 47.370094,8.549106", "center: 47.370094 8.549106",
        "{\"lat\":47.370094,\"lng\":8.549106}", "{\"location\":{\"lat\":\"47.370094\",\"long\":\"8.549106\"}}",
        "{\"type\":\"Point\",\"coordinates\":[8.549106,47.370094,408]}",
        "{\"type\":\"LineString\",\"coordinates\":[[8.549106,47.370094],[8.549106,47.370094]]}",
        "<georss:point>47.370094 8.549106</georss:point>", "<gml:pos srsDimension=\"2\">47.370094 8.549106</gml:pos>",
        "<coordinates>8.549106,47.370094,0 8.549106,47.370094,0</coordinates>", "<trkpt lat=\"47.370094\" lon=\"8.549106\">",
        "<Item name=\"center\" sample=\"0\">47.370094 8.549106</Item>", "<Item name=\"LATITUDE\" role=\"x\">47.370094</Item>",
        "POINT (8.549106 47.370094)", "https://maps.google.com/?q=47.370094,8.549106",
        "https://www.google.com/maps/@47.370094,8.549106,17z",
        "https://www.google.com/maps/place/47.370094,8.549106", "/data=!3d47.370094!4d8.549106",
        "https://osm.org/?mlat=47.370094&mlon=8.549106",
        "https://www.openstreetmap.org/#map=17/47.370094/8.549106", "https://maps.apple.com/?ll=47.370094,8.549106",
        "https://bing.com/maps?cp=47.370094~8.549106", "https://maps.google.com/?q=47.370094%2C8.549106",
        "Ort: 47.370094 N, 8.549106 E",
        "47.370094° N, 8.549106° E", "N47.370094° E8.549106°", "+47.370094+008.549106+408.000/",
        "$GPRMC,120000,A,4722.2056,N,00832.9463,E",
        "GPS(8.549106,47.370094,20)", "$GAGGA,1,4722.2056,N,00832.9464,E,1", "BDRMC,1,A,4722.2056,N,00832.9464,E",
        "N47.370094 E8.549106", "-N47.370094-E8.549106", "N47222056E008329464", "[N][47222056][E][008329464]",
        "+4722.20564-00832.94636/",
        "<Item name=\"LAT_OFF\" sample=\"0\">47.370094</Item>",
    ]

    /// Places whose hemispheres and names are in other languages, and places with other punctuation.
    static let languages = [
        "Breitengrad: 47.370094 La\u{308}ngengrad: 8.549106", "coordonne\u{301}es: 47.370094, 8.549106",
        "latitude: \u{2013}47.370094 longitude: \u{2011}8.549106", "纬度：－47.370094 经度：－8.549106",
        "47,370094 N 8,549106 E", "47,370094° N, 8,549106° E", "47,370094N 8,549106E", "Lat.: 47.370094; Long.: 8.549106",
        "Lat. 47.370094, Long. 8.549106", "Lat.: 47,370094; Long.: 8,549106", "lat=47,370094 lon=8,549106",
        "latitude is 47.370094", "latitude of 47.370094", "Latitude (WGS84): 47.370094", "47.370094°N 8.549106°O",
        "N 47.370094 O 8.549106", "47.370094 N, 8.549106 O", "47.370094 с.ш. 8.549106 в.д.",
        "47.370094° с. ш., 8.549106° в. д.", "Breite: 47.370094, Länge: 8.549106", "Breite 47.370094 Länge 8.549106",
        "Breite: 47,370094; Länge: 8,549106", "Breitengrad 47.370094, Längengrad 8.549106",
        "Breitengrad: 47,370094° Längengrad: 8,549106°", "geografische Breite: 47.370094",
        "latitude: 47,370094 longitude: 8,549106", "Latitud: 47.370094, Longitud: 8.549106",
        "latitudine: 47.370094, longitudine: 8.549106", "breedtegraad: 47.370094, lengtegraad: 8.549106",
        "breedte: 47.370094, lengte: 8.549106", "szerokość: 47.370094, długość: 8.549106",
        "szerokość geograficzna: 47.370094, długość geograficzna: 8.549106",
        "Szerokość geograficzna 47,370094; długość geograficzna 8,549106", "широта: 47.370094, долгота: 8.549106",
        "ШИРОТА: 47,370094 ДОЛГОТА: 8,549106", "纬度: 47.370094, 经度: 8.549106", "纬度：47.370094，经度：8.549106",
        "緯度: 47.370094, 經度: 8.549106", "緯度 47.370094 経度 8.549106", "北纬47.370094 东经8.549106", "北纬47.370094度，东经8.549106度",
        "座標: 47.370094, 8.549106", "坐标：47.370094,8.549106", "Coordonnées: 47.370094, 8.549106",
        "Coordenadas: 47.370094, 8.549106", "Koordinate: 47.370094, 8.549106", "Coordinate: 47.370094, 8.549106",
        "Coördinaten: 47.370094, 8.549106", "Współrzędne: 47.370094, 8.549106", "Współrzędne GPS: 47.370094, 8.549106",
        "Координаты: 47.370094, 8.549106", "GPS: 47,370094; 8,549106", "GPS 47,370094, 8,549106", "Coords: 47,370094 8,549106",
        "GPS position: 47.370094 N 8.549106 E", "POINT Z (8.549106 47.370094 408)", "POINT Z(8.549106 47.370094 408)",
        "POINT ZM (8.549106 47.370094 408 1)", "SRID=4326;POINT(8.549106 47.370094)",
        "LINESTRING (8.549106 47.370094, 8.549106 47.370094)", "MULTIPOINT ((8.549106 47.370094), (8.549106 47.370094))",
        "{\"lat\":{\"deg\":47.370094},\"lon\":{\"deg\":8.549106}}",
        "{\"latitude\":{\"value\":47.370094},\"longitude\":{\"value\":8.549106}}", "geo:47.370094,8.549106?z=17",
        "geo:0,0?q=47.370094,8.549106(Label)", "geo:47.370094,8.549106;crs=wgs84;u=10",
        "Lat: N47.370094 Lon: E8.549106", "coordinates (lat, lon): 47.370094, 8.549106", "Coordinates are 47.370094, 8.549106",
        "47.370094N/8.549106E", "47.370094N8.549106E", "47.370094°N/8.549106°E",
    ]

    static let links = [
        "https://www.google.com/maps/place/47%C2%B022'12.3%22N+8%C2%B032'56.8%22E/@47.370094,8.549106,17z",
        "https://www.google.com/maps/place/47.370094%C2%B0N,+8.549106%C2%B0E",
        "https://www.google.com/maps/place/47.370094%2C8.549106", "https://www.google.com/maps/search/47.370094,+8.549106",
        "https://www.google.com/maps/dir//47.370094,8.549106",
        "https://www.google.com/maps/dir/?api=1&destination=47.370094%2C8.549106",
        "https://maps.app.goo.gl/?link=https%3A%2F%2Fwww.google.com%2Fmaps%2F%4047.370094%2C8.549106%2C17z",
        "https://maps.app.goo.gl?link=https://www.google.com/maps/@47.370094,8.549106,17z",
        "https://maps.app.goo.gl/?link=https%3A%2F%2Fwww.google.com%2Fmaps%3Fq%3D47.370094%2C8.549106",
        "https://maps.app.goo.gl/?link=https%3A%2F%2Fmaps.google.com%2F%3Fll%3D47.370094%252C8.549106",
        "https://www.windy.com/?47.370094,8.549106,11", "https://www.windy.com/?rain,47.370094,8.549106,11",
        "https://www.windy.com/47.370094/8.549106?rain", "https://mapy.cz/zakladni?x=8.549106&y=47.370094&z=17",
        "https://zoom.earth/#view=47.370094,8.549106,11z",
        "https://zoom.earth/maps/satellite/#view=47.370094,8.549106,11z/date=2026-07-01",
        "https://www.ventusky.com/?p=47.370094;8.549106;10&l=rain",
        "https://www.lightningmaps.org/#m=oss;t=3;s=0;o=0;b=;ts=0;y=47.370094;x=8.549106;z=10;d=2",
        "https://www.blitzortung.org/#y=47.370094;x=8.549106;", "https://www.bing.com/maps?cp=47.370094~8.549106&lvl=17",
        "https://map.geo.admin.ch/#/map?lang=de&center=47.370094,8.549106",
        "https://yandex.com/maps/?ll=8.549106%2C47.370094&z=17", "https://yandex.com/maps/?pt=8.549106,47.370094",
        "https://maps.apple.com/?daddr=47.370094,8.549106", "https://maps.apple.com/?coordinate=47.370094,8.549106",
        "https://www.waze.com/ul?ll=47.370094%2C8.549106", "https://waze.com/ul?to=ll.47.370094%2C8.549106",
        "https://wego.here.com/?map=47.370094,8.549106,17,normal", "https://share.here.com/l/47.370094,8.549106",
        "https://www.komoot.com/plan/@47.370094,8.549106,17z", "https://peakfinder.org/?lat=47.370094&lng=8.549106",
        "https://uri.amap.com/marker?position=8.549106,47.370094", "windy.com/?47.370094,8.549106,11",
        "zoom.earth/#view=47.370094,8.549106,11z", "mapy.cz/zakladni?x=8.549106&y=47.370094",
        "ventusky.com/?p=47.370094;8.549106", "lightningmaps.org/#y=47.370094;x=8.549106",
        "https://zoom.earth/maps/satellite-hd/#overlays=radar,wind,lightning,fires,heat,coastlines,borders,labels:on,crosshair,"
            + "gusts,pressure,humidity,temperature/view=47.370094,8.549106,11z",
    ]

    /// The place 47.37008, 8.54911, written as degrees and minutes, or with two digits after the point.
    static let angles = [
        "47º22'12.3\"N 8º32'56.8\"E", "47°22’12.3”N 8°32’56.8”E", "47°22′12.3″N 8°32′56.8″E", "47º22’12.3”N 8º32’56.8”E",
        "47° 22′ 12.3″ N, 8° 32′ 56.8″ E", "47˚22'12.3\"N 8˚32'56.8\"E", "47-22-12.3N 008-32-56.8E", "47-22-12N 008-32-56E",
        "N47-22-12.3 E008-32-56.8", "47 22 12.3 N 8 32 56.8 E", "47 22 12.3N, 008 32 56.8E", "47 22.205 N 8 32.946 E",
        "N 47 22.205 E 008 32.946", "N 47 22 12.3 E 008 32 56.8", "47:22:12.3N 8:32:56.8E", "47:22:12.3 N, 008:32:56.8 E",
        "47d22m12.3sN 8d32m56.8sE", "47d22'12.3\"N 8d32'56.8\"E", "47d 22m 12.3s N, 8d 32m 56.8s E", "47.37N 8.55E",
        "47.37 N, 8.55 E", "47.37°N 8.55°E", "47°22'12.3\"N 8°32'56.8\"O", "N47°22'12.3\" O8°32'56.8\"",
        "47°22'12.3\" с.ш. 8°32'56.8\" в.д.", "geogr. Länge: 8.549106", "北纬47°22′12.3″ 东经8°32′56.8″",
        "北緯47度22分12.3秒 東経8度32分56.8秒", "N 47° 22.205 E 008° 32.946", "47° 22,205' N 8° 32,946' E", "Latitude: 47° 22′ 12.3″ N",
        "https://www.google.com/maps/place/47%C2%B022%2712.3%22N+8%C2%B032%2756.8%22E/",
        "https://www.windy.com/-Rain-rain?rain,47.370,8.549,11", "https://www.flightradar24.com/47.37/8.55/10",
        "Lat: 47 22 12.3 N, Lon: 8 32 56.8 E", "Latitude 47 22 12.3 Longitude 8 32 56.8",
        "Latitude: 47 22.205 N Longitude: 8 32.946 E", "lat 47.37 N, lon 8.55 E",
        "Latitude: 47d22m12.3s, Longitude: 8d32m56.8s", "Latitude: 47 deg 22' 12.3\" N Longitude: 8 deg 32' 56.8\" E",
        "47° 22' 12.3'' N 8° 32' 56.8'' E", "Breitengrad = 47° 22,205'", "lat: -47 22 12.3",
        "47º22'12.3\" N, 8º32'56.8\" O", "N 47º 22.205' O 8º 32.946'",
    ]

    static let others = [
        "f/2.8", "1/250 s at ISO 400", "2024-05-01T12:00:00+02:00", "2024:05:01 12:00:00", "12.05.2024",
        "Price: 12.50, 13.75 EUR",
        "version 1.48.1373", "v2.47.370094", "long exposure: 30 s", "long: 2.50 m", "length: 47.370094", "flat=47.370094",
        "colon: 12:30",
        "Translate=0.5, 0.25", "platform: 11.5755", "position: 3, 4", "center: 0.4737, 0.8549", "coordinates: 1024, 768",
        "coords: 1024.25, 768.75", "point 12.5 13.5", "map=1, 2", "size 47.370094 x 8.549106", "#123456", "mail@48.example.org",
        "E = 48",
        "heading 45° N", "45°", "20.5°C", "5 N 6 E", "Canon EF 24-105mm f/4", "0.1234, 0.5678", "query 12.50, 13.75",
        "location: Zurich",
        "a long 47.370094 m way", "+41 44 123 45 67", "geology: 48", "Sony ILCE-7M4 v2.01",
        "Roll-1234-56789", "SKU-1234-56789 ", "SCAN-0012-00123.jpg", "AB-1234-12345-X", "print +4144-26812", "UTC+0200-02300",
        "-1299-00100/", "part A-12.50-123.75", "N4 E5", "N12345678", "N47.37 E8.55 m", "100.25,N,200.25,E",
        "9999.25,N,00832.94,E",
        "SKU-1234-56789", "Roll-1234", "f/2.8 1/250 N5.6", "47 N", "47.37 N", "N 47.37", "2024-05-01T12:00:00Z",
        "12-30-45 N 3", "12-30-45N", "N1.25", "N1.25 E2", "version N1.25", "N5.6 E3.5", "Nikon N90 N80 E200", "12.5 x 8.5",
        "12.5 N 8.5 m", "70-200 N", "FE 24-105mm F4 G OSS", "E 35mm F1.8 OSS", "Nikkor 50 N f/1.8", "Leica M 50 O", "47 O 8",
        "5 o'clock", "3 O'Clock", "47 W 100 W", "60 W 100 W", "12.5 W 8.5 W", "100.25 W, 50.125 W", "5.25 N 3.75 N",
        "044-123-45-67 E", "1-800-555-0199", "Breite: 1024, Länge: 768", "Breite: 120.5 mm", "Breite 12.5 cm Länge 30.2 cm",
        "Länge: 2.50 m", "Länge: 12:30", "Länge 3.75 km", "breedte: 12.5 cm, lengte: 30 cm", "lengte 1.85 m",
        "szerokość: 1920, wysokość: 1080", "szerokość 12.5 cm", "długość: 3.25 m", "długość fali 532.12 nm", "ширина: 1920",
        "долгота дня 15.5", "x=12.5&y=8.5", "x=0.4737;y=0.8549", "x=100.25&y=200.75", "x: 47.3, y: 8.5",
        "{\"x\":12.50,\"y\":13.75}", "{\"x\":512.125,\"y\":384.250}", "y=2.5;x=1.5", "?p=12;30", "page?p=12.5", "view=1",
        "#view=fit", "?view=0.5,0.25", "?12,30", "?1.5,2.5", "style.css?47.370094", "{\"lat\":{\"deg\":\"n\"}}",
        "long exposure of 2.50 s", "Lat. 12 stops", "platform 47.370094", "Länge über alles 47.370094 m", "Koordinate 3, 4",
        "Position 3, 4", "position is 3.5", "location is 12", "Point Z 4", "POINT Z 1 2", "座標 3, 4", "20° O ", "45° Ost",
        "20,5°C N", "rotated 45.5° ", "90° N", "12° 30' tilt", "FOV 47.5° 8.5°", "48-12-30", "01-05-24 N", "24-05-01 E",
        "12:30:45 N", "12:30:45 E", "16:9 E", "47 22 12 N", "10 20 30.5 N 40 50 10.5 m", "1 2 3 E", "ISO 100 200 400 E",
        "2d 3h", "1d2m3s", "Canon 5D E", "5d 22m run", "EOS 5D S R", "N5.6 E1.4", "N100 E50", "E48.1373", "grid N12 E34",
        "S24.5 W30", "S23.50 W30.75 kg", "W12.5 S24.5", "Size S12.50 W13.75", "Item N47.37", "Autobahn A4 N12.50 E13.75 EUR",
        "50 E 60 W", "12.50 E, 13.75 E", "25.50 S, 30.25 S", "2.50 W 3.25 W", "1,234,567", "12,50 EUR", "12,50 E 13,75 E",
        "f/2,8 1/250", "10,5 x 20,25", "1.234,56 E", "24,105 N", "100%2C200", "q=12%2C13", "50%25 off", "mm 50%20100",
        "45%C2%B0", "20%C2%B0C", "query=price 12.50", "link=abc", "?link=12", "{\"deg\":47,\"min\":22}",
        "{\"rotation\":{\"deg\":47.5}}", "{\"length\":{\"value\":47.370094}}", "N-47-22", "A47-22-12N", "47-22-12.5 mm",
        "R47-22-12N", "9-12-15N", "AB47-22-12N", "2024-05-01N", "12-30-00 E", "1-2-3N", "47.37 O 8.55", "N 3.5, O 2.5",
        "N2O 1.5", "N2 O2", "H2O 47.37 ", "CO2 47.5 N2 8.55", "N2 8.55 O2 7.25", "0.5 N 0.25 E", "с. 47", "ш. 1.5 в. 2.5",
        "в 12.30", "M 47", "lens 18-55 S 50.5", "SMC 1:2.8 N", "map 1.5, 2.5",
        "lat 12 reps", "lat 3 x 12.5 kg", "lat pull 3 12 15", "late 3 12 15.5", "12.5 mW 3mW", "47.5 N and 3mW", "5d 3h E",
        "Lat. 3 12 May", "flat 3 12 15.5", "Film latitude of the sensor", "IMG-20240501-WA0012", "DSC-RX100M7 1-20-3.5 N",
        "1-2-3 4-5-6 E", "3-2-1 N 4", "Zeiss 50 1.4 N", "Sony E 18-55, E 16-50", "Sigma 18-35 1.8 S",
        "Nikon N 50 1.8, E 35 1.8", "1920 x 1080 N 8.5 E", "Seite 12, Zeile 3,45678", "Preis 1.234,56 O", "12,50 €, 13,75 €",
        "0,12345 0,23456", "1.5 O 2.5", "O 12.345 E 45.678", "E 12.345 N 4", "10 W 20 W 30 W", "230 V 16 A 3.68 W",
        "3.50 N 2.25", "zoom.us/j/12.50/13", "goo.gl/maps/AbC12", "https://www.windy.com/webcams/1234567890",
        "https://zoom.earth/about", "https://example.com/12.55/13.75", "https://example.com/?x=12.555&y=13.755",
        "Inclinação de 20.5°. O pôr do sol", "rotação 20.5° O céu", "угол 20.5°. О погоде", "angolo 20.5°. E poi",
        "45.5° O'Brien", "47.37 O 8.55 N",
    ]

    private func holdsNumbers(_ text: String) -> Bool { ["370094", "549106", "4722", "47°"].contains { text.contains($0) } }

    /// Characters of coordinates also occur in bytes that are not text.
    @Test func `random bytes hold no location`() throws {
        var state: UInt64 = 7
        let noise = (0..<12 << 20).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        let found = try PhotoLocations(searching: MemoryBytes(noise))
        let finds = Set(found.overwrites.map { "\($0.block) at \($0.range.lowerBound / 64)" })
        #expect(finds.isEmpty)
    }

    @Test(arguments: places + languages + links) func `named coordinates become spaces`(_ text: String) {
        #expect(!holdsNumbers(CoordinateText.cleaned(text)), "\(CoordinateText.cleaned(text))")
    }

    @Test(arguments: others) func `numbers of other kinds stay`(_ text: String) { #expect(CoordinateText.cleaned(text) == text) }

    @Test func `angles with minutes become spaces`() {
        for text in [
            "47°22'12.3\"N 8°32'56.8\"E", "N47°22'12.3\" E008°32'56.8\"", "47 deg 22' 12.3\" N", "N 47° 22.2' E 8° 32.9'",
        ] {
            #expect(!CoordinateText.cleaned("At \(text) at noon").contains("22"), "\(CoordinateText.cleaned(text))")
            #expect(CoordinateText.cleaned("At \(text) at noon").hasSuffix("at noon"))
        }
    }

    @Test(arguments: angles) func `angles without a name become spaces in every block`(_ angle: String) throws {
        let left = CoordinateText.cleaned(angle)
        #expect(!["22", "12", "32", "56", "37", "55"].contains { left.contains($0) }, "\(left)")
        for (name, bytes) in Self.files(angle) {
            let cleaned = try Cleaned(bytes)
            #expect(!cleaned.blocks.isEmpty || name == "UTF-16 of XMP" || name == "UTF-16 of Exif", "\(name)")
            #expect(try Cleaned(cleaned.bytes).bytes == cleaned.bytes, "\(name)")
        }
    }

    @Test(arguments: [
        "{\"lat\":{\"deg\":47,\"min\":22,\"sec\":12.3},\"lng\":{\"deg\":8,\"min\":32,\"sec\":56.8}}",
        "{\"lat\": [47, 22, 12.3], \"lon\": [8, 32, 56.8]}",
    ])
    func `degrees, minutes and seconds of JSON become zeros`(_ text: String) {
        let digits = CoordinateText.cleaned(text).filter(\.isNumber)
        #expect(!digits.isEmpty && digits.allSatisfy { $0 == "0" }, "\(CoordinateText.cleaned(text))")
        let marks = { (text: String) in text.filter { "{}[]\",:".contains($0) } }
        #expect(marks(CoordinateText.cleaned(text)) == marks(text))
    }

    @Test func `the place of each form is known to the proof`() {
        for text in Self.places + Self.languages + Self.links + Self.angles where !text.hasPrefix("$") {
            let places = CoordinateText(Array(text.utf8)).all().flatMap(\.places).flatMap { [$0.latitude, $0.longitude] }
            #expect(
                places.contains { abs(abs($0 ?? 0) - 47.37) < 0.001 || abs(abs($0 ?? 0) - 8.55) < 0.002 }, "\(text): \(places)")
        }
    }

    @Test func `angles with XML entities are removed`() throws {
        for text in ["47&#176;22&#8242;12.3&#x2033;N 8&deg;32&#x2032;56.8&#8243;E", "N47&#xBA;22.205 O8&#186;32.946"] {
            let packet = Samples.packet("<dc:title>At \(text) at noon</dc:title>")
            let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(Array(packet.utf8))))
            #expect(!["22.", "12.3", "32.", "56.8"].contains { cleaned.contains($0) }, "\(text)")
            #expect(cleaned.contains("<dc:title>At ") && cleaned.contains(" at noon</dc:title>"))
        }
    }

    @Test(arguments: [
        "{\"lat\":47.370094,\"a\":1}", "{\"coordinates\":[8.549106,47.370094],\"a\":[1]}", "<a lat=\"47.370094\" b=\"1\"/>",
    ])
    func `marks around numbers stay`(_ text: String) {
        let marks = { (text: String) in text.filter { "{}[]\",:<>=/".contains($0) } }
        #expect(marks(CoordinateText.cleaned(text)) == marks(text), "\(CoordinateText.cleaned(text))")
        #expect(CoordinateText.cleaned(text).contains("0 "))
    }

    @Test func `a date behind a place stays`() {
        #expect(CoordinateText.cleaned("gps: 47.370094, 8.549106 2024-05-01").hasSuffix(" 2024-05-01"))
    }

    @Test func `the place is known to the proof`() {
        let places = CoordinateText(Array("geo:47.370094,8.549106".utf8)).all().flatMap(\.places)
        #expect(places.contains(FoundPlace(latitude: 47.370094, longitude: 8.549106)))
    }

    // MARK: Containers

    private static func escaped(_ text: String) -> String {
        let pairs = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")]
        return pairs.reduce(text) { $0.split(separator: $1.0, omittingEmptySubsequences: false).joined(separator: $1.1) }
    }

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var size = compressBound(UInt(bytes.count))
        var result = [UInt8](repeating: 0, count: Int(size))
        compress(&result, &size, bytes, UInt(bytes.count))
        return Array(result[..<Int(size)])
    }

    /// Returns a file for each kind of block that can contain text. Each file contains the text, with the words "Before" and
    /// "behind" around it.
    static func files(_ place: String) -> [(name: String, bytes: [UInt8])] {
        let text = "Before \(place) behind"
        let bytes = Array(text.utf8)
        let element = Samples.packet(
            "<dc:description><rdf:Alt><rdf:li xml:lang=\"x-default\">\(escaped(text))</rdf:li></rdf:Alt></dc:description>")
        let attribute = Samples.packet("", "my:note=\"\(escaped(text))\"")
        let data = Samples.packet("<my:note><![CDATA[\(text)]]></my:note><!-- \(text) -->")
        let wide: [UInt8] = bytes.contains { $0 >= 0x80 } ? [] : bytes.flatMap { [$0, 0] as [UInt8] }
        let tiff = { (tag: Int, content: [UInt8]) in
            Samples.tiff([Samples.Entry(tag: tag, type: 7, count: content.count, value: content)], hasGPS: false)
        }
        return [
            ("comment of JPEG", Samples.jpeg(Samples.segment(0xFE, bytes))),
            ("description of Exif", Samples.jpeg(Samples.exif(tiff(0x010E, bytes + [0])))),
            ("artist of Exif", Samples.jpeg(Samples.exif(tiff(0x013B, bytes + [0])))),
            ("comment of Exif", Samples.jpeg(Samples.exif(tiff(0x9286, Array("ASCII\0\0\0".utf8) + bytes)))),
            ("UTF-16 of Exif", Samples.jpeg(Samples.exif(tiff(0x9C9C, wide + [0, 0, 0, 0, 0, 0])))),
            ("GDAL of TIFF", tiff(42112, bytes + [0])),
            (
                "caption of IPTC",
                Samples.jpeg(
                    Samples.segment(0xED, Array("Photoshop 3.0\0".utf8) + Samples.resource(0x0404, Samples.dataset(120, text))))
            ),
            ("keyword of IPTC", tiff(0x83BB, Samples.dataset(25, text) + Samples.dataset(25, "Hail"))),
            ("element of XMP", Samples.jpeg(Samples.xmp(Array(element.utf8)))),
            ("attribute of XMP", Samples.riff([("VP8 ", [1, 2, 3]), ("XMP ", Array(attribute.utf8))])),
            ("data of XMP", Samples.png(Samples.chunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0\(data)".utf8)))),
            ("UTF-16 of XMP", Samples.jpeg(Samples.xmp(wide.isEmpty ? [] : element.utf8.flatMap { [0, $0] as [UInt8] }))),
            ("XMP of JPEG XL", Samples.box("JXL ", [13, 10, 0x87, 10]) + Samples.box("xml ", Array(element.utf8))),
            ("text of PNG", Samples.png(Samples.chunk("tEXt", Array("Comment\0\(text)".utf8)))),
            ("deflated text of PNG", Samples.png(Samples.chunk("zTXt", Array("Comment\0\0".utf8) + deflated(bytes)))),
            (
                "text of MP4",
                Samples.film
                    + Samples.box("moov", Samples.box("udta", Samples.box("©cmt", [0, UInt8(bytes.count), 0, 0] + bytes)))
            ),
        ]
    }

    @Test func `digits and marks of double width become spaces`() {
        let text = "纬度：３３．８５６７８４ 经度：１５１．２１５２９７"
        let blanks = CoordinateText(Array(text.utf8)).all().flatMap(\.blanks)
        let digits = Array("８５".utf8)
        #expect(blanks.count == 2 && blanks.contains { Array(text.utf8)[$0].firstRange(of: digits) != nil })
    }

    @Test(arguments: places + languages + links) func `the same text is cleaned in every block`(_ place: String) throws {
        for (name, bytes) in Self.files(place) {
            let cleaned = try Cleaned(bytes)
            #expect(!cleaned.contains("370094") && !cleaned.contains("549106"), "\(name)")
            #expect(!cleaned.contains("3\07\00\00\09\04") && !cleaned.contains("5\04\09\01\00\06"), "\(name)")
            #expect(try Cleaned(cleaned.bytes).bytes == cleaned.bytes, "\(name)")
            if !name.contains("UTF-16"), !name.contains("deflated"), !place.hasPrefix("$") {
                #expect(cleaned.contains("Before ") && cleaned.contains(" behind"), "\(name)")
            }
        }
    }

    @Test(arguments: others) func `other text stays in every block`(_ text: String) throws {
        for (name, bytes) in Self.files(text) { #expect(try Cleaned(bytes).bytes == bytes, "\(name)") }
    }

    // MARK: Names of XMP

    @Test(arguments: [
        ("my:lat", "47.370094"), ("my:Lng", "8.549106"), ("my:long", "8.549106"), ("georss:point", "47.370094 8.549106"),
        ("gml:pos", "47.370094 8.549106"), ("kml:coordinates", "8.549106,47.370094,0"), ("my:Coordinates", "47.370094, 8.549106"),
        ("my:geo", "47.370094;8.549106"), ("my:LatLng", "47.370094,8.549106"), ("my:center", "47.370094 8.549106"),
        ("dc:coverage", "Bellevue 370094"), ("g:where", "<gml:Point><gml:pos>47.370094 8.549106</gml:pos></gml:Point>"),
        ("my:coords", "<rdf:Seq><rdf:li>47.370094</rdf:li><rdf:li>8.549106</rdf:li></rdf:Seq>"),
    ])
    func `values of properties with names of coordinates are removed`(_ name: String, _ value: String) throws {
        var packets = [Samples.packet("<\(name)>\(value)</\(name)><dc:title>Hail</dc:title>")]
        if !value.contains("<") { packets.append(Samples.packet("<dc:title>Hail</dc:title>", "\(name)=\"\(value)\"")) }
        for packet in packets {
            let cleaned = try Cleaned(Samples.jpeg(Samples.xmp(Array(packet.utf8))))
            #expect(!cleaned.contains("370094") && !cleaned.contains("549106"))
            #expect(cleaned.contains("<dc:title>Hail</dc:title>") && cleaned.contains("</rdf:RDF>"))
        }
    }

    @Test(arguments: [
        ("my:long", "30"), ("my:center", "0.25 0.75"), ("my:position", "3"), ("my:lat", "Latin"), ("my:coordinates", "1024, 768"),
        ("my:point", "12.5 13.5"), ("crs:Exposure2012", "+0.50"), ("aux:Lens", "24-105 mm"),
    ])
    func `properties with such a name and another value stay`(_ name: String, _ value: String) throws {
        for packet in [Samples.packet("<\(name)>\(value)</\(name)>"), Samples.packet("", "\(name)=\"\(value)\"")] {
            let jpeg = Samples.jpeg(Samples.xmp(Array(packet.utf8)))
            #expect(try Cleaned(jpeg).bytes == jpeg)
        }
    }

    @Test func `too many names of coordinates without an end are held and named`() throws {
        let packet = "<x:xmpmeta>" + String(repeating: "<my:point>1 2 ", count: 25_000)
        let file = Samples.box("JXL ", [13, 10, 0x87, 10]) + Samples.box("xml ", Array(packet.utf8))
        #expect(throws: LocationFailure.tooExpensive("XMP in box xml  of the film or picture")) {
            try PhotoLocations(searching: MemoryBytes(file))
        }
    }
}

extension CoordinateText {
    /// Returns the text without the coordinates that the search finds in it.
    static func cleaned(_ text: String) -> String {
        var letters = Array(text.utf8)
        for find in CoordinateText(letters).all() {
            for index in find.blanks.joined() { letters[index] = 0x20 }
            for index in find.zeros { letters[index] = 0x30 }
        }
        return String(decoding: letters, as: UTF8.self)
    }
}
