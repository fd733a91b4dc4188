import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import ServerScripts
import Stormy
import Testing

@testable import StormyCommand

/// Tests `stormy download` without a process.
@Suite(.timeLimit(.minutes(30))) struct DownloadCommandTests {
    private static let file = Payload.pattern(100_000)

    @Test func `the query, user and password of a download are not printed and leave the ledger`() async throws {
        try await VirtualHome.play { home in
            home.server.route("GET", "/disk.img", .file(Self.file, etag: "\"v1\""))
            let place = home.folder.appendingPathComponent("disk.img")
            let address = VirtualHome.origin.replacing("://", with: "://me:hunter2@") + "/disk.img?token=t0k3n"
            let queued = try await home.stormy("download", address, "-o", place.path, "--json")
            #expect(queued.status == 0, "\(queued)")
            try await home.driver.advance(by: .seconds(60))
            #expect(try Data(contentsOf: place) == Self.file.data)
            let listed = try await home.stormy("transfers", "--json").output
            let verbose = try await home.stormy("transfers", "--verbose").output
            for output in [queued.output, listed, verbose] {
                #expect(output.contains("\(VirtualHome.origin)/disk.img"), "\(output)")
                #expect(!output.contains("t0k3n") && !output.contains("hunter2"), "\(output)")
            }
            #expect(home.driver.ledger.transfers.map(\.url) == ["\(VirtualHome.origin)/disk.img"])
        }
    }

    @Test func `a download does not replace a file of Stormy`() async throws {
        try await PhotoHome.play { home, _ in
            #expect(try await home.stormy("place", "list").status == 0)
            let file = home.directories.data.appendingPathComponent("stormy.sqlite")
            let before = try Data(contentsOf: file)
            let result = try await home.stormy("download", VirtualHome.origin + "/new", "-o", file.path, "--force")
            #expect(result.status == 73 && result.errors.contains("is a file of Stormy"), "\(result)")
            #expect(try await home.rows("transfers").isEmpty && Data(contentsOf: file) == before)
        }
    }

    /// With `--wait`, the exit code is 0 only if the downloaded file exists.
    @Test func `a complete download whose file is not there is an error`() async throws {
        try await VirtualHome.play { home in
            let place = home.folder.appendingPathComponent("disk.img")
            #expect(DownloadVerb.absence(of: place.path, byteCount: 100_000)?.contains("the file is missing") == true)
            try Self.file.data.write(to: place)
            #expect(DownloadVerb.absence(of: place.path, byteCount: 100_000) == nil)
            // If a file has another size, it is not the downloaded file.
            #expect(DownloadVerb.absence(of: place.path, byteCount: 99_999) != nil)
            #expect(DownloadVerb.absence(of: home.folder.path, byteCount: 0) != nil)
        }
    }

    /// Both commands checked the file name before either of them queued its download.
    @Test func `two downloads to one file are queued once`() async throws {
        try await VirtualHome.play { home in
            home.server.route("GET", "/disk.img", .file(Self.file, etag: "\"v1\""))
            let place = home.folder.appendingPathComponent("disk.img")
            await home.setStartsAgents(false)
            let refusals = try await home.command {
                let session = URLSession(configuration: Downloads.configuration())
                let url = try #require(URL(string: VirtualHome.origin + "/disk.img"))
                let tasks = [false, true].map { Downloads.task(from: url, to: place, replacing: $0, sha256: nil, in: session) }
                for task in tasks { task.resume() }
                return tasks.map { $0.error?.localizedDescription }
            }
            #expect(refusals == [nil, "transfer 1 already downloads to this file"])
            let third = try await home.stormy("download", VirtualHome.origin + "/disk.img", "-o", place.path)
            #expect(
                third.status == 73 && third.errors.contains("\(place.path): transfer 1 already downloads to this file"),
                "\(third)")
            #expect(try await home.rows("transfers").count == 1)
        }
    }

    @Test func `an invalid port and an empty file name are refused`() async throws {
        try await VirtualHome.play { home in
            for port in ["0", "65536", "99999"] {
                let refused = try await home.stormy("download", "http://127.0.0.1:\(port)/x")
                #expect(refused.status == 65 && refused.errors.contains("the port"), "\(refused)")
            }
            let unnamed = try await home.stormy("download", VirtualHome.origin + "/x", "-o", "")
            #expect(unnamed.status == 64 && unnamed.errors.contains("--output"), "\(unnamed)")
            #expect(try await home.rows("transfers").isEmpty)
        }
    }

    @Test func `a name that is too long for the file system is refused before anything is fetched`() async throws {
        try await VirtualHome.play { home in
            home.server.route("GET", "/disk.img", .file(Self.file, etag: "\"v1\""))
            let folder = home.folder.appendingPathComponent("downloads")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let longest = String(repeating: "n", count: 255)
            let refused = try await home.stormy("download", VirtualHome.origin + "/disk.img", "-o", "\(folder.path)/\(longest)n")
            #expect(refused.status == 73 && refused.errors.contains("the name is too long"), "\(refused)")
            try await home.driver.advance(by: .seconds(60))
            #expect(home.server.activity.connectionsAccepted == 0)
            #expect(try await home.rows("transfers").isEmpty)
            let queued = try await home.stormy("download", VirtualHome.origin + "/disk.img", "-o", "\(folder.path)/\(longest)")
            #expect(queued.status == 0, "\(queued)")
            try await home.driver.advance(by: .seconds(60))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [longest])
        }
    }

    @Test func `a download replaces a link only with --force and never the file that the link leads to`() async throws {
        try await VirtualHome.play { home in
            home.server.route("GET", "/disk.img", .file(Self.file, etag: "\"v1\""))
            let kept = try home.write(Data("kept".utf8), to: "kept.txt")
            let link = home.folder.appendingPathComponent("link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: kept)
            func download(_ options: String...) async throws -> VirtualHome.Result {
                let result = try await home.stormy(["download", VirtualHome.origin + "/disk.img", "-o", link.path] + options)
                try await home.driver.advance(by: .seconds(60))
                return result
            }
            let refused = try await download()
            #expect(refused.status == 73 && refused.errors.contains("--force to replace the link"), "\(refused)")
            #expect(home.server.activity.connectionsAccepted == 0)
            #expect(try await download("--force").status == 0)
            #expect(try Data(contentsOf: kept) == Data("kept".utf8))
            #expect(try Data(contentsOf: link) == Self.file.data)
        }
    }
}
