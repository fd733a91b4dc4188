import Foundation

/// Removes secrets and control characters from texts of a server, so that the texts can be shown.
enum ServerText {
    /// The text that replaces a removed part.
    static let mark = "…"

    /// Returns the text as a line of at most `maximum` characters. Control characters, and the queries and passwords of
    /// addresses, are removed.
    static func line(_ text: String?, maximum: Int = 200) -> String {
        let plain = (text ?? "").unicodeScalars.prefix(maximum * 5).filter { !$0.properties.isControl }
        return String(withoutPasswords(withoutQueries(String(String.UnicodeScalarView(plain)))).prefix(maximum))
    }

    /// Replaces the query of each address or path. Servers quote the address of a request, and its query may be a signature.
    private static func withoutQueries(_ text: String) -> String {
        var (result, rest) = ("", text[...])
        while let start = rest.firstIndex(of: "?") {
            let query = rest[start...].prefix { !$0.isWhitespace && !"\"'<>)".contains($0) }
            result += rest[...start]
            rest = rest[rest.index(after: start)...]
            guard query.contains("=") else { continue }
            result += mark
            rest = rest[query.endIndex...]
        }
        return result + rest
    }

    /// Removes the user and the password from each address.
    private static func withoutPasswords(_ text: String) -> String {
        var (result, rest) = ("", text[...])
        while let scheme = rest.range(of: "://") {
            result += rest[..<scheme.upperBound]
            rest = rest[scheme.upperBound...]
            let authority = rest.prefix { !$0.isWhitespace && !"/?#\"'<>".contains($0) }
            if let at = authority.lastIndex(of: "@") { rest = rest[authority.index(after: at)...] }
        }
        return result + rest
    }
}

extension Unicode.Scalar.Properties {
    /// `true` for control characters and format characters, for example characters that change the direction of writing.
    fileprivate var isControl: Bool { generalCategory == .control || generalCategory == .format }
}

/// The secrets of an upload. The secrets are removed from messages, because a server may quote secrets in its responses.
struct UploadSecrets {
    /// The minimum length of a secret. Shorter texts are not treated as secrets, because they may be ordinary words.
    private static let shortest = 4

    /// The secrets from the longest to the shortest, because a secret can be a part of another secret.
    private let texts: [String]

    init(_ plan: UploadPlan) {
        var found: Set<String> = []
        for field in plan.headers where !RedirectRule.isHarmless(field.name) {
            found.insert(field.value)
            // The value is for example "Bearer TOKEN" or "Basic BASE64".
            let words = field.value.split(separator: " ").map(String.init)
            guard words.count == 2 else { continue }
            found.insert(words[1])
            guard words[0].lowercased() == "basic", let data = Data(base64Encoded: words[1]) else { continue }
            let account = String(decoding: data, as: UTF8.self)
            found.formUnion([account, account.drop { $0 != ":" }.dropFirst().description])
        }
        if let address = URLComponents(string: plan.collectionURL) {
            found.formUnion(
                [address.percentEncodedQuery, address.query, address.percentEncodedPassword, address.password].compactMap { $0 })
            for item in (address.queryItems ?? []) + (address.percentEncodedQueryItems ?? []) { found.insert(item.value ?? "") }
        }
        texts = found.filter { $0.count >= Self.shortest }.sorted { ($0.count, $0) > ($1.count, $1) }
    }

    func removed(from trouble: TransferTrouble) -> TransferTrouble {
        var trouble = trouble
        for text in texts { trouble.message = trouble.message.replacing(text, with: ServerText.mark) }
        return trouble
    }
}
