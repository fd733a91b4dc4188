import Foundation
import TransferMachines
import Testing

/// Tests XML documents of servers and weather services.
@Suite struct ResponseXMLTests {
    private let stylesheet = "<?xml-stylesheet type=\"text/xsl\" href=\"/style.xsl\"?>"

    private func read(_ text: String, _ encoding: String.Encoding = .utf8) -> ResponseXML? {
        text.data(using: encoding).flatMap(ResponseXML.read)
    }

    @Test(arguments: [
        "<?xml-stylesheet type=\"text/xsl\" href=\"/style.xsl\"?>", "<?z?>", "<?php echo '<a>' ?>", "<!-- a < b & c -->",
        "<!DOCTYPE a>", "<!DOCTYPE a SYSTEM \"a.dtd\">", "<!DOCTYPE a PUBLIC \"-//X//DTD 1.0//EN\" \"http://x.test/a.dtd\" []>",
        "<!DOCTYPE a [<!ELEMENT a (#PCDATA)> <!NOTATION n SYSTEM \"n\"> <!-- ENTITY --> <?z ENTITY?>]>",
    ]) func `instructions, comments and document types are skipped`(_ line: String) {
        for declaration in ["", "<?xml version=\"1.0\"?>", "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n"] {
            #expect(read("\(declaration)\(line)<a>b</a>")?.text == "b")
        }
        if !line.hasPrefix("<!D") { #expect(read("<a>b\(line)c</a>\(line)")?.text == "bc") }
    }

    @Test func `every encoding that a parser must know is read, with and without a byte order mark`() throws {
        let text = "<a b=\"Zürich\">Gewitter über Köln</a>"
        func isRead(_ data: Data?) -> Bool {
            let root = data.flatMap(ResponseXML.read)
            return root?.text == "Gewitter über Köln" && root?.attributes["b"] == "Zürich"
        }
        let byteOrderMark = "\u{FEFF}"
        for name in ["UTF-8", "utf-8"] {
            #expect(isRead("<?xml version=\"1.0\" encoding=\"\(name)\"?>\(text)".data(using: .utf8)))
        }
        #expect(isRead((byteOrderMark + "<?xml\nversion=\"1.0\"?>\n" + text).data(using: .utf8)))
        for encoding in [String.Encoding.utf16LittleEndian, .utf16BigEndian] {
            for declaration in ["", "<?xml version=\"1.0\" encoding=\"UTF-16\"?>"] {
                for mark in ["", byteOrderMark] {
                    #expect(isRead((mark + declaration + text).data(using: encoding)), "\(encoding)")
                }
            }
        }
        for name in ["ISO-8859-1", "iso-8859-1"] {
            #expect(isRead("<?xml version=\"1.0\" encoding=\"\(name)\"?>\(text)".data(using: .isoLatin1)))
        }
        #expect(read("<?xml version=\"1.0\" encoding=\"US-ASCII\"?><a>&#252;</a>", .ascii)?.text == "ü")
        #expect(read("\r\n <?xml version=\"1.0\"?>\(stylesheet)<a>b</a>\n\n")?.text == "b", "an empty line comes first")
    }

    /// Each row contains the same character in a different encoding.
    @Test(
        arguments: [
            ("windows-1252", [0xE9], "é"), ("Windows-1252", [0x93], "“"), ("windows-1251", [0xE3], "г"),
            ("ISO-8859-2", [0xB3], "ł"),
            ("ISO-8859-15", [0xA4], "€"), ("KOI8-R", [0xC7], "г"), ("GB2312", [0xB7, 0xE7], "风"), ("gbk", [0xB7, 0xE7], "风"),
            ("Shift_JIS", [0x91, 0xE4], "台"), ("EUC-JP", [0xC2, 0xE6], "台"), ("Big5", [0xA5, 0x78], "台"),
            ("EUC-KR", [0xC6, 0xF8], "폭"),
        ] as [(String, [UInt8], String)]) func `an encoding that the parser does not know is converted`(
            _ name: String, _ bytes: [UInt8], _ text: String
        )
    {
        let start = Data("\n<?xml version='1.0' encoding = \"\(name)\" ?><a b=\"x\">y".utf8)
        #expect(ResponseXML.read(start + bytes + Data("</a>".utf8))?.text == "y\(text)")
        #expect(ResponseXML.read(start + Data("</a>".utf8))?.attributes == ["b": "x"])
    }

    @Test func `bytes that are not of the declared encoding are refused`() {
        for (name, bytes) in [("GB2312", [0xFF, 0xFF]), ("Shift_JIS", [0x81]), ("windows-1252", [0x81])] as [(String, [UInt8])] {
            let start = Data("<?xml version=\"1.0\" encoding=\"\(name)\"?><a>".utf8)
            #expect(ResponseXML.read(start + bytes + Data("</a>".utf8)) == nil, "\(name)")
        }
    }

    @Test(arguments: ["UTF-7", "UTF-16", "EBCDIC-CP-FR", "x"]) func `an encoding that does not fit the bytes is refused`(
        _ name: String
    ) {
        #expect(read("<?xml version=\"1.0\" encoding=\"\(name)\"?><a>b</a>") == nil)
    }

    @Test func `bytes that are not of the encoding are refused`() {
        let name: [UInt8] = [0x3C, 0xED, 0xED, 0x3E, 0x3C, 0x2F, 0xED, 0xED, 0x3E]
        let overlong: [UInt8] = [0x3C, 0x61, 0x3E, 0xC0, 0xBC, 0x3C, 0x2F, 0x61, 0x3E]
        let latin: [UInt8] = [0x3C, 0x61, 0x3E, 0xFC, 0x3C, 0x2F, 0x61, 0x3E]
        for bytes in [name, overlong, latin, [0x3C, 0x61, 0x3E, 0x00, 0x3C, 0x2F, 0x61, 0x3E]] {
            #expect(ResponseXML.read(Data(bytes)) == nil, "\(bytes)")
        }
    }

    @Test(arguments: [
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
        "<!DOCTYPE a [<!ENTITY % b \"c\"> %b;]><a/>", "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>",
        "<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]><a d=\"&c;\"/>",
        // A parser would repeat a default value in every element.
        "<!DOCTYPE a [<!ATTLIST a b CDATA \"cccccccccc\">]><a/>",
        "<!DOCTYPE a SYSTEM \"a.dtd\"><a>&b;</a>", "<a>&nbsp;</a>", "<a b=\"&c;\"/>",
    ]) func `declared and unknown entities are refused`(_ text: String) {
        #expect(read(text) == nil)
        #expect(read(text, .utf16) == nil)
    }

    @Test func `the five entities and characters by number are read`() {
        let root = read("<a b=\"&quot;&apos;\">&lt;&amp;&gt;&#x41;&#66;<![CDATA[<&b;>]]></a>")
        #expect(root?.text == "<&>AB<&b;>" && root?.attributes == ["b": "\"'"])
    }

    @Test(arguments: [
        "", " ", "no", "<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a><b></a></b>", "<?xml?><a/>", "{}",
        "<a/>text", "<!DOCTYPE", "<a <b/>", "<a>]]></a>", "<1/>",
    ]) func `text that is not well-formed is refused`(_ text: String) {
        #expect(read(text) == nil)
        #expect(read(text, .utf16) == nil)
    }

    @Test func `a document that is cut off is refused`() {
        let whole = "<?xml version=\"1.0\"?><a><b>c</b><d e=\"f\"/></a>"
        for length in 0..<whole.utf8.count { #expect(ResponseXML.read(Data(whole.utf8.prefix(length))) == nil, "\(length)") }
        #expect(read(whole) != nil)
    }

    @Test func `depth, elements, attributes and bytes have limits`() {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        #expect(read(nested(32)) != nil && read(nested(33)) == nil && read(nested(100_000)) == nil)
        func wide(_ count: Int) -> String { "<a>\(String(repeating: "<b/>", count: count))</a>" }
        #expect(read(wide(ResponseXML.maximumNodes - 1))?.children.count == ResponseXML.maximumNodes - 1)
        #expect(read(wide(ResponseXML.maximumNodes)) == nil)
        let beyond = Data(wide(ResponseXML.maximumNodes).utf8)
        #expect(throws: ResponseXML.Refusal.tooManyElements) { try ResponseXML.parse(beyond) }
        for text in ["<a>", nested(33)] {
            #expect(throws: ResponseXML.Refusal.notReadable) { try ResponseXML.parse(Data(text.utf8)) }
        }
        let attributes = (0..<ResponseXML.maximumNodes).map { "a\($0)=\"\"" }.joined(separator: " ")
        #expect(read("<a \(attributes)/>") == nil)
        #expect(read("<a>\(String(repeating: "b", count: ResponseXML.maximumBytes))</a>") == nil)
    }

    @Test func `names are local, and an element has the text outside its children`() throws {
        let text = "<d:a xmlns:d=\"DAV:\" d:c=\"1\"> x <d:b> y </d:b> z <e:b/></d:a>"
        let root = try #require(read(text))
        #expect(root.name == "a" && root.text == "x  z" && root.all("b").map(\.text) == ["y", ""])
        #expect(root.attributes["d:c"] == "1" && root.first("b")?.text == "y" && root["c"] == nil)
    }
}
