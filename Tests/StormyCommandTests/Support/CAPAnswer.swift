import Foundation
import ServerScripts

/// CAP 1.2 documents, and a feed of such documents. The times are relative to the time when the value is created.
struct CAPAnswer: Sendable {
    private let now: Date

    init(_ home: VirtualHome) { now = home.now }

    private func time(_ hours: Double) -> String { now.addingTimeInterval(hours * 3600).formatted(.iso8601) }

    /// - Parameters:
    ///   - kind: The `msgType`.
    ///   - reference: The identifier of the document to which this document refers.
    ///   - area: The XML elements of the area.
    func document(
        _ id: String, _ kind: String = "Alert", of reference: String = "", area: String, status: String = "Actual"
    ) -> ResponseScript {
        let info = """
            <info><language>en-GB</language><event>Gale \(id)</event><severity>Extreme</severity><onset>\(time(2))</onset>
            <expires>\(time(5))</expires><senderName>Met</senderName><area><areaDesc>A</areaDesc>\(area)</area></info>
            """
        return .status(
            200, headers: ["Content-Type": "application/cap+xml"],
            body: .text(
                """
                <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>\(id)</identifier><sender>m</sender>
                <sent>\(time(kind == "Alert" ? -1 : -0.1))</sent><status>\(status)</status><msgType>\(kind)</msgType>
                <references>\(reference.isEmpty ? "" : "m,\(reference),x")</references>\(info)</alert>
                """))
    }

    /// Returns an Atom feed that lists documents under `/cap/`.
    func feed(_ names: String...) -> ResponseScript {
        let entries = names.map { "<entry><link type=\"application/cap+xml\" href=\"/cap/\($0)\"/></entry>" }
        return .status(200, body: .text("<feed xmlns=\"http://www.w3.org/2005/Atom\">\(entries.joined())</feed>"))
    }
}
