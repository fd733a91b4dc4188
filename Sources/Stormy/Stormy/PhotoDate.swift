import Foundation
import Glibc
import TransferMachines

/// The day on which a photo was taken.
package struct PhotoDate: Equatable, Sendable {
    package let year: Int
    package let month: Int
    package let day: Int

    package init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// The number of bytes that are searched for Exif data, and the number of TIFF structures that are examined.
    private static let (searchedBytes, mostStructures) = (64 << 20, 100)

    /// Returns the day of a photo: the day in its Exif data, which is the day at the place where the photo was taken. If the photo
    /// has no Exif date, returns the day of the file's modification time in the time zone of this computer.
    package static func of(_ file: URL) -> PhotoDate? {
        if let photo = try? MappedFile(file), let date = withExtendedLifetime(photo, { inExif(photo.data) }) { return date }
        var (information, parts) = (stat(), tm())
        guard stat(file.path, &information) == 0 else { return nil }
        var seconds = information.st_mtim.tv_sec
        localtime_r(&seconds, &parts)
        return PhotoDate(year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday))
    }

    /// Returns the first date in a TIFF structure: DateTimeOriginal (Exif 2.3, 4.6.5), or DateTime if no structure has an original
    /// date.
    static func inExif(_ data: Data) -> PhotoDate? {
        let range = data.startIndex..<min(data.endIndex, data.startIndex + searchedBytes)
        var changed: PhotoDate?
        for (mark, isLittleEndian) in [(Data([0x49, 0x49, 0x2A, 0]), true), (Data([0x4D, 0x4D, 0, 0x2A]), false)] {
            var (from, count) = (range.lowerBound, 0)
            while count < mostStructures, let found = data.range(of: mark, in: from..<range.upperBound) {
                (from, count) = (found.upperBound, count + 1)
                let reader = TIFFReader(data: data, base: found.lowerBound, isLittleEndian: isLittleEndian)
                guard let entries = reader.number(at: 4, bytes: 4).flatMap(reader.entries) else { continue }
                let exif = entries.first { $0.tag == 0x8769 }.flatMap { reader.entries(at: $0.value) } ?? []
                for entry in exif where entry.tag == 0x9003 { if let date = date(entry, reader) { return date } }
                for entry in entries where entry.tag == 0x0132 { changed = changed ?? date(entry, reader) }
            }
        }
        return changed
    }

    /// Reads a date such as "2026:07:14 12:00:00".
    private static func date(_ entry: TIFFReader.Entry, _ reader: TIFFReader) -> PhotoDate? {
        guard entry.count >= 19 else { return nil }
        let bytes = (0..<10).compactMap { reader.number(at: entry.value + $0, bytes: 1) }
        let numbers = String(decoding: bytes.map { UInt8($0) }, as: UTF8.self)
            .split(whereSeparator: { $0 == ":" || $0 == "-" }).compactMap { Int($0) }
        guard numbers.count == 3 else { return nil }
        return PhotoDate(year: numbers[0], month: numbers[1], day: numbers[2])
    }
}

extension PhotoDestination {
    /// Returns the address of the folder for a photo. The address contains the date of the photo if the destination has a
    /// ``path``.
    func folder(for file: URL) -> URL {
        guard let path else { return url }
        let date = path.contains("{") ? PhotoDate.of(file) : nil
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let values = date.map { [("{year}", "\($0.year)"), ("{month}", two($0.month)), ("{day}", two($0.day))] } ?? []
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
