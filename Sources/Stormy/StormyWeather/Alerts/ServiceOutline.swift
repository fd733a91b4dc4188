/// The outlines of the countries whose services respond with an empty list for a place that they do not cover.
///
/// The outlines are drawn manually, about 20 km outside the border. For this reason, the outline of a country also contains towns
/// of a neighbour country that are close to the border.
enum ServiceOutline {
    /// Returns whether a place is in Norway or its coastal waters, in Svalbard, or on Jan Mayen. Source of the rule: the maritime
    /// and land borders of Norway.
    static func norwayContains(_ place: Coordinates) -> Bool {
        AlertArea.contains(norway, place) || (70.5...71.5).contains(place.latitude) && (-10 ... -7).contains(place.longitude)
            || (73.5...81.5).contains(place.latitude) && (9...35).contains(place.longitude)
    }

    /// Returns whether a place is in the 48 continental states of the United States or in their coastal waters.
    static func continentalStatesContain(_ place: Coordinates) -> Bool { AlertArea.contains(continentalStates, place) }

    private static let norway = ring([
        (57.8, 6.5), (58.0, 9.0), (58.7, 10.6), (58.95, 11.1), (58.9, 11.6), (59.7, 12.1), (60.3, 12.8), (61.0, 13.1),
        (61.6, 13.1), (62.3, 12.5), (63.2, 12.4), (63.7, 12.6), (64.0, 14.4), (64.6, 14.2), (65.1, 14.8), (66.1, 15.0),
        (66.5, 15.8), (67.1, 16.7), (67.9, 17.7), (68.0, 18.4), (68.35, 18.5), (68.4, 20.0), (68.9, 20.7), (69.0, 21.1),
        (69.1, 21.6), (68.6, 22.8), (68.5, 23.5), (68.45, 24.9), (68.7, 25.5), (69.2, 26.1), (69.7, 26.4), (69.85, 27.5),
        (69.9, 28.2), (69.7, 28.6), (69.4, 28.7), (69.0, 28.7), (68.9, 29.1), (69.4, 30.2), (69.5, 31.0), (69.8, 31.3),
        (70.5, 32.0), (72.0, 30.0), (72.0, 18.0), (69.5, 12.0), (66.0, 8.0), (62.5, 3.0), (59.0, 2.0),
    ])

    private static let continentalStates = ring([
        (48.5, -125.5), (48.3, -123.7), (48.25, -123.3), (48.75, -123.3), (49.05, -123.35), (49.1, -122.0), (49.1, -95.4),
        (49.5, -95.4), (49.5, -94.6), (48.85, -94.4), (48.75, -93.0), (48.45, -92.0), (48.25, -91.0), (48.2, -90.0),
        (48.1, -89.3), (48.35, -88.3), (47.5, -86.0), (46.95, -85.0), (46.65, -84.6), (46.55, -84.2), (46.2, -83.4),
        (45.8, -83.1), (45.3, -82.5), (43.6, -82.1), (43.05, -82.3), (42.6, -82.4), (42.37, -82.85), (42.05, -83.05),
        (41.75, -82.4), (42.2, -81.2), (42.6, -79.8), (42.8, -78.95), (43.05, -79.1), (43.3, -79.1), (43.45, -78.9),
        (43.65, -77.5),
        (43.65, -76.8), (44.2, -76.35), (44.5, -75.75), (45.03, -74.8), (45.1, -74.3), (45.1, -71.5), (45.4, -71.2),
        (45.4, -70.8), (46.0, -70.4), (46.7, -70.1), (47.5, -69.3), (47.5, -68.3), (47.2, -67.7), (45.7, -67.7), (45.2, -67.2),
        (44.95, -66.8), (44.4, -66.7), (40.0, -66.0), (24.0, -79.0), (24.0, -83.5), (25.8, -96.5), (25.75, -97.4),
        (25.95, -98.2), (26.3, -99.2), (27.4, -99.65), (28.3, -100.5), (29.2, -101.1), (29.65, -101.6), (29.6, -102.4),
        (28.85, -103.0), (28.85, -103.3), (29.4, -104.5), (30.5, -105.2), (31.6, -106.4), (31.7, -108.3), (31.2, -108.3),
        (31.2, -111.1), (32.4, -114.9), (32.45, -117.3), (32.4, -118.5), (33.0, -120.5), (38.0, -124.5), (40.4, -125.2),
    ])

    private static func ring(_ corners: [(Double, Double)]) -> [Coordinates] {
        corners.compactMap { try? Coordinates(latitude: $0.0, longitude: $0.1) }
    }
}
