import Foundation

/// The declarations in the text of `Package.swift`: the targets, their dependencies and their layers.
struct PackageManifest {
    enum Kind: String {
        case systemLibrary
        case target
        case executableTarget
        case testTarget
    }

    struct Target: Equatable {
        var kind: Kind
        var name: String
        /// The names of the modules and library products that this target depends on.
        var dependencies: [String]
    }

    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    var targets: [Target] = []
    /// The layers, lowest first. Each layer is a folder of `Sources`, with its modules.
    var floors: [(name: String, modules: [String])] = []

    /// - Throws: ``Unreadable`` if a part of the manifest has an unknown form.
    init(source: String) throws {
        let text = SourceText.withoutComments(source)
        let names = try Self.namedProducts(text)
        if let start = text.firstMatch(of: /let layers: [^=]*= \[/) {
            let (body, _) = try Self.balanced(text[start.range.upperBound...], "[", "]")
            floors = body.matches(of: /\(\s*"(\w+)",\s*\[([^\]]*)\]/).map { floor in
                (String(floor.1), floor.2.matches(of: /"([^"]+)"/).map { String($0.1) })
            }
        }
        guard let list = text.range(of: "targets: [\n", options: .backwards) else {
            throw Unreadable(description: "no list of targets")
        }
        var rest = text[list.upperBound...]
        while let call = rest.firstMatch(of: /\.(systemLibrary|target|executableTarget|testTarget)\(/) {
            let (body, end) = try Self.balanced(rest[call.range.upperBound...], "(", ")")
            rest = rest[end...]
            // This call only changes the kind of a target that is already in the list.
            if body.contains("name: target.name, dependencies: target.dependencies") { continue }
            guard let kind = Kind(rawValue: String(call.1)), let name = body.firstMatch(of: /name:\s*"([^"]+)"/) else {
                throw Unreadable(description: "a target without a name: \(body.prefix(60))")
            }
            targets.append(
                Target(kind: kind, name: String(name.1), dependencies: try Self.dependencies(body, products: names)))
        }
    }

    func target(_ name: String) -> Target? { targets.first { $0.name == name } }

    /// Returns the direct and indirect dependencies of a target.
    func closure(of name: String) -> Set<String> {
        var seen: Set<String> = []
        var open = target(name)?.dependencies ?? []
        while let next = open.popLast() {
            guard seen.insert(next).inserted else { continue }
            open += target(next)?.dependencies ?? []
        }
        return seen
    }

    /// Returns the products that are constants in the manifest, for example `let grdb = Target.Dependency.product(name: "GRDB",
    /// …)`.
    private static func namedProducts(_ text: String) throws -> [String: String] {
        var names: [String: String] = [:]
        for match in text.matches(of: /let (\w+) = Target\.Dependency\.product\(name:\s*"([^"]+)"/) {
            names[String(match.1)] = String(match.2)
        }
        return names
    }

    private static func dependencies(_ body: Substring, products: [String: String]) throws -> [String] {
        guard let start = body.firstMatch(of: /dependencies:\s*\[/) else { return [] }
        let (list, _) = try balanced(body[start.range.upperBound...], "[", "]")
        return try list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            .compactMap { item -> String? in
                if item.isEmpty || item.wholeMatch(of: /package:.*/) != nil { return nil }
                if let plain = item.wholeMatch(of: /"([^"]+)"/) { return String(plain.1) }
                if let product = item.firstMatch(of: /^\.product\(name:\s*"([^"]+)"/) { return String(product.1) }
                if let known = products[item] { return known }
                throw Unreadable(description: "a dependency that is not understood: \(item)")
            }
    }

    private static func balanced(
        _ text: Substring, _ open: Character, _ close: Character
    ) throws -> (body: Substring, end: Substring.Index) {
        var depth = 1
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == open { depth += 1 }
            if text[index] == close { depth -= 1 }
            if depth == 0 { return (text[..<index], text.index(after: index)) }
            index = text.index(after: index)
        }
        throw Unreadable(description: "a bracket that is not closed")
    }
}
