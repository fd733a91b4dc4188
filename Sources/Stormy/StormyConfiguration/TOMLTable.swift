import CTomlplusplus

/// A table of a TOML text. The line and the column of each key are stored, because error messages contain them.
struct TOMLTable {
    /// A line and a column, both beginning with 1. Columns count Unicode scalars.
    struct Place: Equatable, Comparable {
        var line: Int
        /// `nil` if only the line is known.
        var column: Int?

        static func < (one: Place, other: Place) -> Bool { (one.line, one.column ?? 0) < (other.line, other.column ?? 0) }

        /// Returns `nil` if the library does not report the line.
        fileprivate init?(_ place: ctoml_place) {
            guard place.line > 0 else { return nil }
            self.init(line: Int(place.line), column: place.column > 0 ? Int(place.column) : nil)
        }

        init(line: Int, column: Int?) { (self.line, self.column) = (line, column) }
    }

    enum Value {
        case table(TOMLTable)
        case text(String)
        case integer(Int)
        case number(Double)
        case boolean(Bool)
        /// An array of texts. `nil` if the array contains a value that is not a text.
        case list([String]?)
        /// Types that a file may contain, but that no key of the configuration has.
        case date, time, dateTime
    }

    struct Entry {
        var value: Value
        /// The line and the column of the key in the file. If a table is written several times, the value is the position of the
        /// first occurrence.
        var place: Place?
    }

    /// The reason why a text is not valid TOML.
    struct Refusal: Error {
        /// The library's message, as one line.
        var words: String
        var place: Place?
    }

    private(set) var entries: [String: Entry] = [:]

    fileprivate mutating func set(_ key: String, _ entry: Entry) { entries[key] = entry }

    /// Parses a complete text. The time is proportional to the size of the text. Nesting is limited: values can have 32 levels,
    /// and dotted keys can have some thousands of parts.
    static func read(_ text: String) throws(Refusal) -> TOMLTable {
        let builder = Builder()
        var text = text
        text.withUTF8 { bytes in
            var visitor = ctoml_visitor(
                context: Unmanaged.passUnretained(builder).toOpaque(),
                enter: { Builder.at($0).enter(String($1), Place($2)) },
                leave: { Builder.at($0).leave() },
                value: { Builder.at($0).add(String($1), Place($2), $3.pointee) },
                item: { Builder.at($0).add(item: $1.pointee) },
                refused: { Builder.at($0).refuse(String($1), Place($2)) })
            guard let start = UnsafeRawPointer(bytes.baseAddress) else { return }
            ctoml_visit(ctoml_text(start: start.assumingMemoryBound(to: CChar.self), count: bytes.count), &visitor)
        }
        if let refusal = builder.refusal { throw refusal }
        return builder.root
    }
}

/// Builds the tables from the calls that the TOML library makes while it reads the text.
private final class Builder {
    /// The tables that are not complete yet, the outermost table first.
    private var open: [(key: String, place: TOMLTable.Place?, table: TOMLTable)] = []
    private(set) var root = TOMLTable()
    private var list: (key: String, place: TOMLTable.Place?, texts: [String]?) = ("", nil, nil)
    private(set) var refusal: TOMLTable.Refusal?

    static func at(_ context: UnsafeMutableRawPointer) -> Builder {
        Unmanaged<Builder>.fromOpaque(context).takeUnretainedValue()
    }

    func enter(_ key: String, _ place: TOMLTable.Place?) { open.append((key, place, TOMLTable())) }

    func leave() {
        let (key, place, table) = open.removeLast()
        set(key, TOMLTable.Entry(value: .table(table), place: place))
    }

    func add(_ key: String, _ place: TOMLTable.Place?, _ value: ctoml_value) {
        let value: TOMLTable.Value =
            switch value.kind {
            case ctoml_kind_text: .text(String(value.text))
            case ctoml_kind_integer: .integer(Int(value.integer))
            case ctoml_kind_number: .number(value.number)
            case ctoml_kind_boolean: .boolean(value.boolean)
            case ctoml_kind_date: .date
            case ctoml_kind_time: .time
            case ctoml_kind_date_time: .dateTime
            default: .list([])
            }
        set(key, TOMLTable.Entry(value: value, place: place))
        list = (key, place, [])
    }

    /// Adds an item to the array that was read last.
    func add(item: ctoml_value) {
        list.texts = item.kind == ctoml_kind_text ? list.texts.map { $0 + [String(item.text)] } : nil
        set(list.key, TOMLTable.Entry(value: .list(list.texts), place: list.place))
    }

    func refuse(_ words: String, _ place: TOMLTable.Place?) {
        refusal = TOMLTable.Refusal(words: words.split(whereSeparator: \.isWhitespace).joined(separator: " "), place: place)
    }

    private func set(_ key: String, _ entry: TOMLTable.Entry) {
        if open.isEmpty { root.set(key, entry) } else { open[open.count - 1].table.set(key, entry) }
    }
}

extension String {
    fileprivate init(_ text: ctoml_text) {
        let start = UnsafeRawPointer(text.start)
        self.init(decoding: UnsafeRawBufferPointer(start: start, count: text.count), as: UTF8.self)
    }
}
