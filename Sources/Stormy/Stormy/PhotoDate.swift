import Foundation
import Glibc
import TransferMachines

/// The time at which a photo was taken, as the date and time at the place where it was taken.
package struct PhotoDate: Equatable, Sendable {
    package let year: Int
    package let month: Int
    package let day: Int
    private var hour = 0
    private var minute = 0
    private var second = 0
    /// The offset from UTC in seconds. `nil` if the photo does not contain an offset.
    private var offset: Int?
    package private(set) var source = PhotoTime.Source.exifWithoutOffset

    package init?(year: Int, month: Int, day: Int) {
        guard (1...9998).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        // A day such as February 30 becomes a day of the next month.
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
        _ = timegm(&parts)
        guard parts.tm_mon == month - 1 else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// Creates the date of a point in time in the time zone of this computer.
    private init?(_ time: Int, _ source: PhotoTime.Source) {
        var (seconds, parts) = (time, tm())
        localtime_r(&seconds, &parts)
        self.init(year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday))
        (hour, minute, second) = (Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec))
        (offset, self.source) = (parts.tm_gmtoff, source)
    }

    /// The point in time. Without an offset, the time zone of this computer is assumed.
    package var time: PhotoTime {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
        (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (Int32(hour), Int32(minute), Int32(second), -1)
        let seconds = offset.map { timegm(&parts) - $0 } ?? mktime(&parts)
        return PhotoTime(date: Date(timeIntervalSince1970: Double(seconds)), source: source)
    }

    /// The day as text, for example "2026-07-14".
    var dayText: String {
        func padded(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    }

    /// The number of TIFF structures that are examined.
    private static let mostStructures = 100

    /// Returns the date of a photo. The best source is the Exif data of the photo, then the JSON file of Google Photos, and then
    /// the modification time of the file.
    ///
    /// - Parameter google: The path of the JSON file that belongs to the photo. `nil` if no such file exists.
    package static func of(_ file: URL, google: String? = nil) -> PhotoDate? {
        if let date = inExif(file) { return date }
        if let time = google.flatMap(GoogleSidecar.init(path:))?.takenAt, let date = PhotoDate(time, .google) { return date }
        var information = stat()
        guard stat(file.path, &information) == 0 else { return nil }
        return PhotoDate(information.st_mtim.tv_sec, .file)
    }

    /// Returns the date in the Exif data of a photo. `nil` if the photo has no such date.
    static func inExif(_ file: URL) -> PhotoDate? { OriginalBytes.metadata(of: file.path).flatMap(inExif) }

    /// Returns the first date in a TIFF structure: DateTimeOriginal (Exif 2.3, 4.6.5), or DateTime if no structure has an original
    /// date.
    static func inExif(_ data: Data) -> PhotoDate? {
        let range = data.startIndex..<data.endIndex
        var changed: PhotoDate?
        for (mark, isLittleEndian) in [(Data([0x49, 0x49, 0x2A, 0]), true), (Data([0x4D, 0x4D, 0, 0x2A]), false)] {
            var (from, count) = (range.lowerBound, 0)
            while count < mostStructures, let found = data.range(of: mark, in: from..<range.upperBound) {
                (from, count) = (found.upperBound, count + 1)
                let reader = TIFFReader(data: data, base: found.lowerBound, isLittleEndian: isLittleEndian)
                guard let entries = reader.number(at: 4, bytes: 4).flatMap(reader.entries) else { continue }
                let exif = entries.first { $0.tag == 0x8769 }.flatMap { reader.entries(at: $0.value) } ?? []
                // The tags are DateTimeOriginal with OffsetTimeOriginal, and DateTime with OffsetTime (Exif 2.31, 4.6.5).
                if let date = date(0x9003, in: exif, offset: 0x9011, exif, reader) { return date }
                changed = changed ?? date(0x0132, in: entries, offset: 0x9010, exif, reader)
            }
        }
        return changed
    }

    /// Reads a date such as "2026:07:14 12:00:00", and an offset such as "+02:00".
    private static func date(
        _ tag: Int, in entries: [TIFFReader.Entry], offset: Int, _ exif: [TIFFReader.Entry], _ reader: TIFFReader
    ) -> PhotoDate? {
        guard let entry = entries.first(where: { $0.tag == tag }), entry.count >= 19 else { return nil }
        let parts = reader.text(entry, limit: 19).split { ":- ".contains($0) }.compactMap { Int($0) }
        guard parts.count >= 3, var date = PhotoDate(year: parts[0], month: parts[1], day: parts[2]) else { return nil }
        if parts.count == 6, (0..<24).contains(parts[3]), (0..<60).contains(parts[4]), (0...60).contains(parts[5]) {
            (date.hour, date.minute, date.second) = (parts[3], parts[4], parts[5])
        }
        if let entry = exif.first(where: { $0.tag == offset }), let seconds = seconds(reader.text(entry, limit: 6)) {
            (date.offset, date.source) = (seconds, .exif)
        }
        return date
    }

    /// Returns the seconds of an offset such as "+05:30" or "Z".
    private static func seconds(_ offset: String) -> Int? {
        if offset.hasPrefix("Z") { return 0 }
        let parts = offset.dropFirst().split(separator: ":").compactMap { Int($0) }
        guard let sign = offset.first, "+-".contains(sign), parts.count == 2, (0...15).contains(parts[0]),
            (0..<60).contains(parts[1])
        else { return nil }
        return (sign == "-" ? -1 : 1) * (parts[0] * 3_600 + parts[1] * 60)
    }
}

extension PhotoDestination {
    /// Returns the address of the folder for a photo. The address contains the date of the photo if the destination has a
    /// ``path``.
    func folder(for date: @autoclosure () -> PhotoDate?) -> URL {
        guard let path else { return url }
        let date = path.contains("{") ? date() : nil
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let values =
            date.map { [("{year}", String($0.dayText.prefix(4))), ("{month}", two($0.month)), ("{day}", two($0.day))] } ?? []
        return path.split(separator: "/").reduce(url) { folder, part in
            let name = values.reduce(String(part)) { $0.replacing($1.0, with: $1.1) }
            // A photo without a date is stored in folders with the name "unknown".
            return folder.appendingPathComponent(name.contains("{") ? "unknown" : name, isDirectory: true)
        }
    }

    /// Returns whether an address is the address of this destination, or of a folder of its ``path``.
    func contains(_ address: String?) -> Bool {
        let own = PublicAddress.of(url.absoluteString)
        guard path != nil, let address else { return own == address }
        return address.hasPrefix(own.hasSuffix("/") ? own : own + "/")
    }
}
