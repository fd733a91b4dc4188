import Foundation

/// Reads a table of the file and checks its keys. Every error contains the key and the key's line and column in the file.
struct TableReader {
    let path: [String]
    private let table: TOMLTable
    /// The line and the column of the table. `nil` for the root table, because the root table has no key.
    private let place: TOMLTable.Place?
    /// The name of the file, which every error contains.
    private let file: String

    /// Creates a reader. Throws an error for the first key of the table that is not in `known`. The parameter `elsewhere`
    /// contains the full names of keys in other tables. If a key is in the wrong table, the error then names the right table.
    init(
        _ table: TOMLTable, path: [String], at place: TOMLTable.Place? = nil, known: [String]?, elsewhere: [String] = [],
        file: String
    ) throws(ConfigurationError) {
        (self.table, self.path, self.place, self.file) = (table, path, place, file)
        guard let known else { return }
        let unknown = table.entries.keys.filter { !known.contains($0) }
        let last = TOMLTable.Place(line: .max, column: .max)
        func order(_ key: String) -> TOMLTable.Place { table.entries[key]?.place ?? last }
        guard let first = unknown.min(by: { order($0) < order($1) }) else { return }
        let near = NearestName.find(first, among: known)
        let moved = elsewhere.first { $0.split(separator: ".").last.map(String.init) == first }
        if let near, near.isLikely || moved == nil {
            throw error(.unknownKey(name(first), nearest: name(near.name), isLikely: near.isLikely), at: first)
        }
        throw error(.unknownKey(name(first), nearest: moved ?? "", isLikely: true), at: first)
    }

    var keys: [String] { table.entries.keys.sorted() }

    /// The line of a key in the file, beginning with 1. `nil` if the line is unknown.
    func line(of key: String) -> Int? { table.entries[key]?.place?.line }

    /// Returns the table below `key`. `nil` if the table does not contain the key.
    func table(_ key: String, known: [String]?, elsewhere: [String] = []) throws(ConfigurationError) -> TableReader? {
        guard let entry = table.entries[key] else { return nil }
        guard case .table(let below) = entry.value else { throw wrongType(key, entry.value, "a table ([\(name(key))])") }
        return try TableReader(below, path: path + [key], at: entry.place, known: known, elsewhere: elsewhere, file: file)
    }

    func bool(_ key: String, into target: inout Bool) throws(ConfigurationError) {
        target = try bool(key) ?? target
    }

    /// Returns a Boolean value. `nil` if the table does not contain the key.
    func bool(_ key: String) throws(ConfigurationError) -> Bool? {
        guard let value = table.entries[key]?.value else { return nil }
        guard case .boolean(let bool) = value else { throw wrongType(key, value, "true or false") }
        return bool
    }

    func integer(_ key: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
        guard let value = table.entries[key]?.value else { return nil }
        guard case .integer(let integer) = value else { throw wrongType(key, value, "a whole number") }
        guard range.contains(integer) else {
            let bounds =
                range.upperBound == .max ? "\(range.lowerBound) or more" : "from \(range.lowerBound) to \(range.upperBound)"
            throw invalid(key, "\(integer)", "write a whole number \(bounds)")
        }
        return integer
    }

    /// Reads a number with or without a fraction. If `positive` is `true`, zero is refused.
    func number(_ key: String, upTo limit: Double, positive: Bool, into target: inout Double) throws(ConfigurationError) {
        guard let value = table.entries[key]?.value else { return }
        let (number, shown): (Double, String)
        switch value {
        case .integer(let whole): (number, shown) = (Double(whole), String(whole))
        case .number(let fraction): (number, shown) = (fraction, String(fraction))
        default: throw wrongType(key, value, "a number")
        }
        guard number.isFinite, positive ? number > 0 : number >= 0, number <= limit else {
            let top = String(format: "%.0f", limit)
            let positiveWords = "write a number that is greater than 0 and at most \(top)"
            throw invalid(key, shown, positive ? positiveWords : "write a number from 0 to \(top)")
        }
        target = number
    }

    /// Returns a text without control characters, because the text may be used in a header. `nil` if the table does not contain
    /// the key, or if the text is empty.
    func string(_ key: String) throws(ConfigurationError) -> String? {
        guard let value = table.entries[key]?.value else { return nil }
        guard case .text(let string) = value else { throw wrongType(key, value, "a text in quotes") }
        guard !string.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw invalid(key, "a text of several lines or with control characters", "write the text on one line")
        }
        return string.isEmpty ? nil : string
    }

    /// Returns a case of an enumeration by its name.
    func choice<Choice: RawRepresentable & CaseIterable>(_ key: String, _: Choice.Type) throws(ConfigurationError) -> Choice?
    where Choice.RawValue == String {
        try choice(key, among: Array(Choice.allCases))
    }

    func choice<Choice: RawRepresentable>(_ key: String, among choices: [Choice]) throws(ConfigurationError) -> Choice?
    where Choice.RawValue == String {
        guard let value = table.entries[key]?.value else { return nil }
        guard case .text(let text) = value else { throw wrongType(key, value, "a text in quotes") }
        if let choice = choices.first(where: { $0.rawValue == text }) { return choice }
        let names = choices.map(\.rawValue)
        let near = NearestName.find(text, among: names).flatMap { $0.isLikely ? "did you mean \"\($0.name)\"? " : nil } ?? ""
        let shown =
            "\"" + String(text.unicodeScalars.prefix(60).map { $0.properties.generalCategory == .control ? " " : Character($0) })
            + "\""
        throw invalid(key, shown, near + "write one of " + names.joined(separator: ", "))
    }

    /// Returns an http or https address with a host. `nil` if the table does not contain the key, or if the text is empty. Errors
    /// do not contain the value, because the value may contain a password.
    func url(_ key: String) throws(ConfigurationError) -> String? {
        guard let text = try string(key) else { return nil }
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty
        else { throw invalid(key, "this address", "write http:// or https:// and a host") }
        try refuseInvalidPort(of: parts, key)
        return text
    }

    /// Returns addresses without duplicates. The result is empty if the table does not contain the key.
    func urls(_ key: String, atMost limit: Int) throws(ConfigurationError) -> [String] {
        guard let value = table.entries[key]?.value else { return [] }
        let expected = "a list of texts, [\"https://…\"]"
        guard case .list(let items) = value else { throw wrongType(key, value, expected) }
        guard let texts = items else {
            throw error(.wrongType(key: name(key), expected: expected, found: "a list with a value that is not a text"), at: key)
        }
        var urls: [String] = []
        for text in texts where !urls.contains(text) {
            let isPlain = !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
            guard isPlain, let parts = URLComponents(string: text), ["http", "https"].contains(parts.scheme?.lowercased() ?? ""),
                parts.host?.isEmpty == false
            else { throw invalid(key, "one of these addresses", "write http:// or https:// and a host for each address") }
            try refuseInvalidPort(of: parts, key)
            urls.append(text)
        }
        guard urls.count <= limit else { throw invalid(key, "\(urls.count) addresses", "write at most \(limit)") }
        return urls
    }

    private func refuseInvalidPort(of parts: URLComponents, _ key: String) throws(ConfigurationError) {
        guard let port = parts.port, !(1...65_535).contains(port) else { return }
        throw invalid(key, "the port \(port)", "write a number from 1 to 65535")
    }

    func invalid(_ key: String, _ value: String, _ advice: String) -> ConfigurationError {
        error(.invalidValue(key: name(key), value: value, advice: advice), at: key)
    }

    func missing(_ key: String, _ advice: String) -> ConfigurationError {
        ConfigurationError(.missingKey(name(key), advice: advice), path: file, line: place?.line, column: place?.column)
    }

    func exposed(_ key: String) -> ConfigurationError {
        error(.exposedCredential(key: name(key)), at: key)
    }

    private func wrongType(_ key: String, _ value: TOMLTable.Value, _ expected: String) -> ConfigurationError {
        let found =
            switch value {
            case .table: "a table"
            case .list: "a list"
            case .text: "a text"
            case .integer: "a whole number"
            case .number: "a number with a fraction"
            case .boolean: "true or false"
            case .date: "a date"
            case .time: "a time"
            case .dateTime: "a date with time"
            }
        return error(.wrongType(key: name(key), expected: expected, found: found), at: key)
    }

    private func error(_ problem: ConfigurationError.Problem, at key: String) -> ConfigurationError {
        let place = table.entries[key]?.place
        return ConfigurationError(problem, path: file, line: place?.line, column: place?.column)
    }

    /// Returns the full name of a key, for the texts of errors. Parts are quoted if TOML requires quotes, and control characters
    /// are escaped.
    private func name(_ key: String) -> String {
        (path + [key]).map { part in
            let plain = part.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "_" || $0 == "-")
            }
            return plain && !part.isEmpty
                ? part
                : "'" + String(part.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) }) + "'"
        }.joined(separator: ".")
    }
}
