import Foundation

/// The reason in the body of a response by which a server refuses a request.
///
/// The body contains XML or JSON. XML with a message comes from Sabre/DAV, Nextcloud and ownCloud (`<d:error><s:message>`), and
/// from S3. JSON with `message` and `errors` comes from Immich. Version 2 of Immich sends a list of messages, and version 3 sends
/// a list of errors.
struct ServerReason: Equatable {
    /// The reason as a single line without control characters.
    let text: String
    /// The name of the exception that caused the refusal (Sabre/DAV). The text is empty if the body contains no exception.
    let exception: String
    /// `true` if the server may accept the same request later (`<o:retry>true</o:retry>` of Nextcloud and ownCloud).
    let mayPass: Bool

    /// The maximum number of characters of a reason.
    private static let maximumLength = 400

    /// Creates a reason. Returns `nil` if the body does not have one of these forms.
    init?(_ body: Data) {
        let found: (texts: [String], exception: String)
        var retry: String?
        if let answer = ResponseXML.read(body) {
            guard let error = [answer, answer["Error"]].compactMap({ $0 }).first(where: { $0.name.lowercased() == "error" })
            else {
                return nil
            }
            found = ([(error["message"] ?? error["Message"])?.text ?? ""], error["exception"]?.text ?? "")
            retry = error["retry"]?.text
        } else if let answer = try? JSONDecoder().decode(JSONErrorBody.self, from: body) {
            found = (answer.texts, "")
        } else {
            return nil
        }
        let line = ServerText.line(found.texts.filter { !$0.isEmpty }.joined(separator: "; "), maximum: Self.maximumLength)
        exception = ServerText.line(found.exception)
        mayPass = retry?.lowercased() == "true"
        guard !line.isEmpty || !exception.isEmpty else { return nil }
        text = line.isEmpty ? exception : line
    }

    private struct JSONErrorBody: Decodable {
        private enum Key: CodingKey { case message, errors }

        let texts: [String]

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            let message = try? values.decode(TextOrList.self, forKey: .message)
            let errors = try? values.decode([Fault].self, forKey: .errors)
            texts = (message?.texts ?? []) + (errors ?? []).map(\.text)
        }
    }

    private struct TextOrList: Decodable {
        let texts: [String]

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            texts = if let text = try? value.decode(String.self) { [text] } else { try value.decode([String].self) }
        }
    }

    /// An entry of `errors`. The entry is a text, or a message about a field.
    private struct Fault: Decodable {
        private enum Key: CodingKey { case message, path, keys }

        /// A step of the path to a field: a name or a position.
        private struct Step: Decodable {
            let text: String

            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                text = if let number = try? value.decode(Int.self) { "\(number)" } else { try value.decode(String.self) }
            }
        }

        let text: String

        init(from decoder: any Decoder) throws {
            if let plain = try? decoder.singleValueContainer().decode(String.self) {
                text = plain
                return
            }
            let values = try decoder.container(keyedBy: Key.self)
            let path = (try? values.decode([Step].self, forKey: .path).map(\.text).joined(separator: ".")) ?? ""
            let keys = (try? values.decode([String].self, forKey: .keys).joined(separator: ", ")) ?? ""
            let message = (try? values.decode(String.self, forKey: .message)) ?? ""
            text = [path, message, keys].filter { !$0.isEmpty }.joined(separator: ": ")
        }
    }
}
