import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests plain PUT into a folder that other machines also use. The files have names as cameras give them.
@Suite(.timeLimit(.minutes(30))) struct SharedFolderTests {
    /// Returns a photo of about `count` bytes. Photos with different values of `mark` differ only in their last byte.
    private static func photo(_ count: Int, mark: UInt8) -> Data {
        JPEG.withoutPosition + Data(repeating: 7, count: count) + Data([mark])
    }

    private static func receipt(_ home: VirtualHome) async throws -> (state: String?, url: String?, verified: String?) {
        let row = try #require(try await home.rows("transfers").last)
        let receipt = row["receipt"] as? [String: Any]
        return (row["state"] as? String, receipt?["url"] as? String, receipt?["verified"] as? String)
    }

    /// The PUT of this machine fails. Another machine then stores a file of the same length under the same name.
    @Test(arguments: [1_000, 1_500_000])
    func `a photo whose name another machine took gets another name`(_ count: Int) async throws {
        try await PhotoHome.play(PhotoHome.destination("put")) { home, store in
            let photo = try home.write(Self.photo(count, mark: 1), to: "DSC1.jpg")
            store.cutUploads(afterBytes: 500, next: 1)
            #expect(try await home.stormy("upload", photo.path).status == 0)
            try await home.advance(untilFirstTransferIs: .waiting)
            try Self.photo(count, mark: 2).write(to: store.directory.appendingPathComponent("DSC1.jpg"))
            try await home.driver.advance(by: .seconds(600))
            let receipt = try await Self.receipt(home)
            #expect(receipt.state == "completed" && receipt.url?.hasSuffix("/DSC1-1.jpg") == true, "\(receipt)")
            #expect(store.contents(of: "/DSC1.jpg") == Self.photo(count, mark: 2))
            #expect(store.contents(of: "/DSC1-1.jpg") == Self.photo(count, mark: 1))
        }
    }

    @Test(arguments: [(1_000, nil, "digest"), (1_500_000, nil, "content"), (1_000, 403, "length")] as [(Int, Int?, String)])
    func `a photo whose response was lost is read back, and the receipt names the proof`(
        _ count: Int, _ refusal: Int?, _ proof: String
    ) async throws {
        try await PhotoHome.play(PhotoHome.destination("put")) { home, store in
            let photo = try home.write(Self.photo(count, mark: 1), to: "DSC1.jpg")
            store.loseAnswers(to: "PUT", next: 1)
            if let refusal { store.refuse(status: refusal, method: "GET", next: 1) }
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            let receipt = try await Self.receipt(home)
            #expect(receipt.state == "completed" && receipt.verified == proof, "\(receipt)")
            #expect(store.arrived == ["DSC1.jpg"])
            #expect(home.server.requests(matching: "/photos/*").filter { $0.method == "PUT" }.count == 1)
        }
    }

    /// The server accepts the photo, and never replaces existing files.
    @Test func `a photo whose PUT made a new file is not read back`() async throws {
        try await PhotoHome.play(PhotoHome.destination("put")) { home, _ in
            let photo = try home.write(Self.photo(1_000, mark: 1), to: "DSC1.jpg")
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            let receipt = try await Self.receipt(home)
            #expect(receipt.verified == "length", "\(receipt)")
            let methods = home.server.requests(matching: "/photos/*").map(\.method)
            #expect(methods == ["HEAD", "PUT", "HEAD"])
        }
    }

    /// The server confirms that it renamed the file, but it did not rename the file.
    @Test func `a WebDAV upload is completed when the file has its name`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(Self.photo(1_000, mark: 1), to: "DSC1.jpg")
            store.refuse(status: 201, method: "MOVE", next: 1)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            #expect(store.arrived == ["DSC1.jpg"])
            #expect(try await Self.receipt(home).verified == "length")
            let methods = home.server.requests(matching: "/photos/*").map(\.method)
            #expect(methods.filter { $0 == "MOVE" }.count == 2 && methods.filter { $0 == "PUT" }.count == 1, "\(methods)")
        }
    }
}
