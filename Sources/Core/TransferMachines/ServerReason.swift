import Foundation

/// The reason in the body of a response with which a server refuses a request.
///
/// Two forms are supported. The first form is XML with a message. Sabre/DAV, Nextcloud, ownCloud (`<d:error><s:message>`) and S3
/// send it. The second form is JSON with `message` and `errors`. Immich sends it: version 2 with a list of messages, version 3 with
/// a list of errors.
struct ServerReason: Equatable {
    /// The reason as a line without control characters.
    let text: String
    /// The name of the exception that caused the refusal (Sabre/DAV). Empty if the body names no exception.
    let exception: String
    /// `true` if the server may accept the same request later (`<o:retry>true</o:retry>` of Nextcloud and ownCloud).
    let mayPass: Bool

    /// The maximum number of characters of a reason.
    private static let maximumLength = 400

    /// Creates a reason; `nil` if the body gives no reason in one of these forms.
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

    /// An entry of `errors`: a text, or a message about a field.
    private struct Fault: Decodable {
        private enum Key: CodingKey { case message, path, keys }

        /// A field by its name or by its position.
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
