import Foundation

/// A refusal in the body of a successful response to a form. Many scripts respond with status 200 to a file that they did not store.
///
/// Only refusals for programs are read: JSON with `success`, `ok`, `status`, `error` or `errors`, and XML with `stat="fail"` (the
/// form of Flickr's API). A page for readers is not interpreted.
struct FormRefusal: Equatable {
    /// The reason as a single line, or an empty text if the body contains no reason.
    let reason: String

    /// Creates a refusal. Returns `nil` if the body is not a refusal for programs.
    init?(_ body: Data) {
        if let root = ResponseXML.read(body) {
            guard root.attributes["stat"]?.lowercased() == "fail" else { return nil }
            reason = ServerText.line(root["err"]?.attributes["msg"] ?? "")
        } else if let result = try? JSONDecoder().decode(Result.self, from: body), result.isRefusal {
            reason = ServerReason(body)?.text ?? ServerText.line(result.error ?? "")
        } else {
            return nil
        }
    }

    private struct Result: Decodable {
        private enum Key: CodingKey { case success, ok, status, error, errors }

        private(set) var isRefusal = false
        /// The text of `error`, if `error` is a text.
        private(set) var error: String?

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            for key in [Key.success, .ok] {
                if let isStored = try? values.decode(Bool.self, forKey: key) { isRefusal = isRefusal || !isStored }
                if let text = try? values.decode(String.self, forKey: key) {
                    isRefusal = isRefusal || text.lowercased() == "false"
                }
            }
            if let status = try? values.decode(String.self, forKey: .status) {
                isRefusal = isRefusal || ["error", "fail", "failed", "failure"].contains(status.lowercased())
            }
            error = try? values.decode(String.self, forKey: .error)
            isRefusal = isRefusal || error?.isEmpty == false || (try? values.decode(Bool.self, forKey: .error)) == true
            // An object or a list is a refusal if it is not empty.
            for key in [Key.error, .errors] {
                if let list = try? values.nestedUnkeyedContainer(forKey: key) { isRefusal = isRefusal || (list.count ?? 0) > 0 }
                if let object = try? values.nestedContainer(keyedBy: AnyKey.self, forKey: key) {
                    isRefusal = isRefusal || !object.allKeys.isEmpty
                }
            }
        }
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
