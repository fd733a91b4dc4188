import Foundation

/// The encoding that an XML document declares, if the XML parser does not support this encoding. Every encoding that this type
/// supports contains ASCII.
struct DeclaredEncoding {
    /// The name of the encoding for the function `iconv`.
    private let name: String

    /// The names of encodings for `iconv`. The keys are the names in XML declarations. As in browsers, a larger encoding is used
    /// if it contains the named encoding.
    private static let names: [String: String] = {
        var names = [
            "gb2312": "GB18030", "gbk": "GB18030", "gb18030": "GB18030", "big5": "BIG5-HKSCS", "shift_jis": "CP932",
            "windows-31j": "CP932", "euc-jp": "EUC-JP", "euc-kr": "CP949", "koi8-r": "KOI8-R", "koi8-u": "KOI8-U",
            "tis-620": "CP874", "windows-874": "CP874",
        ]
        for number in 1250...1258 { names["windows-\(number)"] = "CP\(number)" }
        for number in [2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16] { names["iso-8859-\(number)"] = "ISO-8859-\(number)" }
        return names
    }()

    /// - Returns: `nil` if the document does not declare an encoding of this type. The XML parser then determines the encoding.
    init?(of data: Data) {
        let start = data.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }.prefix(200)
        guard start.starts(with: Data("<?xml".utf8)) else { return nil }
        let text = String(decoding: start.prefix { $0 != UInt8(ascii: ">") }, as: UTF8.self).lowercased()
        guard let found = text.firstMatch(of: /encoding\s*=\s*["']([a-z0-9._\-]+)["']/),
            let name = Self.names[String(found.1)]
        else { return nil }
        self.name = name
    }

    /// - Returns: `nil` if the bytes are not valid in the encoding, or if the system does not support the encoding.
    func utf8(_ data: Data) -> Data? {
        guard let converter = iconv_open("UTF-8", name), converter != iconv_t(bitPattern: -1) else { return nil }
        defer { iconv_close(converter) }
        var (input, output) = (Array(data), [UInt8](repeating: 0, count: 4 * data.count))
        let size = output.count
        let left = input.withUnsafeMutableBytes { from in
            output.withUnsafeMutableBytes { to -> Int? in
                var (source, target) = (
                    from.baseAddress?.assumingMemoryBound(to: CChar.self), to.baseAddress?.assumingMemoryBound(to: CChar.self)
                )
                var (sourceLeft, targetLeft) = (from.count, to.count)
                guard iconv(converter, &source, &sourceLeft, &target, &targetLeft) != -1, sourceLeft == 0 else { return nil }
                return targetLeft
            }
        }
        return left.map { Data(output.prefix(size - $0)) }
    }
}
