import Foundation

/// A `multipart/form-data` body (RFC 7578) whose last part is a file. The type stores the bytes before and after the file.
struct FormBody {
    struct Field {
        let name: String
        let value: String
    }

    /// A small file before the main file.
    struct Attachment {
        let field: String
        let file: UploadCompany.Sidecar

        init(field: String, _ file: UploadCompany.Sidecar) { (self.field, self.file) = (field, file) }
    }

    let boundary: String
    let opening: Data
    let closing: Data

    /// - Parameters:
    ///   - token: A value that is unique to this upload. The boundary contains the letters and digits of this value.
    ///   - fields: The fields before the file, in their order.
    init(
        token: String, fields: [Field] = [], attachment: Attachment? = nil, fileField: String, fileName: String,
        contentType: String
    ) {
        let boundary = "----stormy-\(Self.plain(token))"
        var text = ""
        func header(_ field: String, _ name: String, _ type: String) -> String {
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.quoted(field))\"; "
                + "filename=\"\(Self.quoted(RemoteName.safe(name)))\"\r\nContent-Type: \(Self.oneLine(type))\r\n\r\n"
        }
        for field in fields {
            text += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.quoted(field.name))\"\r\n\r\n"
            text += "\(Self.oneLine(field.value))\r\n"
        }
        var opening = Data(text.utf8)
        if let attachment {
            opening += Data(header(attachment.field, attachment.file.fileName, "application/octet-stream").utf8)
            opening += attachment.file.content + Data("\r\n".utf8)
        }
        self.boundary = boundary
        self.opening = opening + Data(header(fileField, fileName, contentType).utf8)
        closing = Data("\r\n--\(boundary)--\r\n".utf8)
    }

    var contentType: HeaderField { HeaderField("Content-Type", "multipart/form-data; boundary=\(boundary)") }

    var content: UploadContent { .wrapped(before: opening, after: closing) }

    /// Returns the length of a form with a file of `byteCount` bytes.
    func length(around byteCount: Int64) -> Int64 { Int64(opening.count + closing.count) + byteCount }

    static func plain(_ token: String) -> String {
        String(token.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(48))
    }

    /// Returns the text in the form that browsers send (HTML standard, multipart/form-data encoding). Quotes and line ends become
    /// percent codes.
    private static func quoted(_ text: String) -> String {
        // The loop uses scalars, because Swift treats a carriage return with a line feed as a single character.
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\"": result += "%22"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    private static func oneLine(_ text: String) -> String {
        String(text.unicodeScalars.filter { $0.value >= 32 }.map(Character.init))
    }
}
