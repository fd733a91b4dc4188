import Foundation

/// A refusal in the body of a successful response to a form. Many scripts respond with status 200 although they did not store the
/// file.
///
/// Only refusals in a form for programs are read: JSON with `success`, `ok`, `status`, `result`, `error` or `errors`, XML with
/// `stat="fail"` (the form of Flickr's API), and XML that is an error. A web page for users is not interpreted.
struct FormRefusal: Equatable {
    /// The reason as a single line, or an empty text if the body contains no reason.
    let reason: String

    /// Creates a refusal. Returns `nil` if the body is not a refusal for programs.
    init?(_ body: Data) {
        if let root = ResponseXML.read(body) {
            let error = root.name.lowercased() == "error" ? ServerReason(body) : nil
            guard error != nil || root.attributes["stat"]?.lowercased() == "fail" else { return nil }
            reason = error?.text ?? ServerText.line(root["err"]?.attributes["msg"] ?? "")
        } else if let value = try? JSONDecoder().decode(Value.self, from: body), let refusal = value.refusal {
            reason = ServerReason(body)?.text ?? ServerText.line(refusal)
        } else {
            return nil
        }
    }

    /// A value of JSON. The types of the same keys differ between scripts: `success` is `false`, `0` or `"false"`.
    private enum Value: Decodable {
        case flag(Bool)
        case number(Double)
        case text(String)
        case list([Value])
        case object([String: Value])
        case null

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let flag = try? value.decode(Bool.self) {
                self = .flag(flag)
            } else if let number = try? value.decode(Double.self) {
                self = .number(number)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let list = try? value.decode([Value].self) {
                self = .list(list)
            } else {
                // Some servers write the keys with a capital letter.
                let values = try? value.decode([String: Value].self)
                self = values.map { .object(Dictionary($0.map { ($0.lowercased(), $1) }) { first, _ in first }) } ?? .null
            }
        }

        /// The value as a boolean, if the value means true or false. `nil` for any other value.
        private var isTrue: Bool? {
            switch self {
            case .flag(let flag): flag
            case .number(let number): number != 0
            case .text(let text):
                ["true", "1", "yes", "ok"].contains(text.lowercased())
                    ? true : ["false", "0", "no", "none", "null", ""].contains(text.lowercased()) ? false : nil
            case .list, .object, .null: nil
            }
        }

        /// `true` if the value describes an error: a text, a number, or a list or an object with such values.
        private var isError: Bool {
            switch self {
            case .list(let values): values.contains(where: \.isError)
            case .object(let values): values.values.contains(where: \.isError)
            case .null: false
            case .flag, .number, .text: isTrue ?? true
            }
        }

        /// The reason of a refusal, or `nil` if the value is not a refusal. A list contains a result for each file.
        var refusal: String? {
            switch self {
            case .list(let values): return values.lazy.compactMap(\.refusal).first
            case .object(let values):
                let stated = (values["success"] ?? values["ok"])?.isTrue
                if stated == true { return nil }
                let hasError = (values["error"] ?? values["errors"])?.isError == true
                let hasFailed = (values["status"] ?? values["result"])?.isFailedStatus == true
                if stated == false || hasError || hasFailed {
                    return ["message", "msg", "error", "err", "errors"].lazy.compactMap { values[$0]?.words }.first ?? ""
                }
                return values["files"]?.refusal
            case .flag, .number, .text, .null: return nil
            }
        }

        /// `true` if the value reports a failure. Such values are `false`, an HTTP status of an error, and words such as
        /// "failed". The number 0 does not report a failure, because some scripts send 0 after a success.
        private var isFailedStatus: Bool {
            switch self {
            case .flag(let flag): !flag
            case .number(let number): number >= 400
            case .text(let text): ["error", "fail", "failed", "failure", "false"].contains(text.lowercased())
            case .list, .object, .null: false
            }
        }

        /// The first text in the value.
        private var words: String? {
            switch self {
            case .text(let text): text.isEmpty ? nil : text
            case .list(let values): values.lazy.compactMap(\.words).first
            case .object(let values): (values["message"] ?? values["msg"])?.words
            case .flag, .number, .null: nil
            }
        }
    }
}
