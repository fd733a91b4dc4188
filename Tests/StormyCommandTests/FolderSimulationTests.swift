import BackgroundTasksTesting
import Foundation
import ServerScripts
import Spool
import Testing

/// Simulates hostile events in a watched folder, and compares the result with an audit.
///
/// `FOLDER_EVENTS` is the number of events, and `SEED` chooses them. A proof uses 100,000 events.
@Suite(.timeLimit(.minutes(600))) struct FolderSimulationTests {
    private static let count = Int(ProcessInfo.processInfo.environment["FOLDER_EVENTS"] ?? "") ?? 150
    private static let seed = UInt64(ProcessInfo.processInfo.environment["SEED"] ?? "") ?? 1

    /// The photos and the events of one simulation.
    private struct World {
        private var state: UInt64
        private var number = 0
        /// The names of the photos that are in the folder.
        var photos: [String] = []
        /// The names of photos that another program is still writing.
        var growing: [String] = []
        var isAway = false

        init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

        mutating func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }

        /// A photo whose bytes no other photo has.
        mutating func content() -> Data {
            number += 1
            return JPEG.picture("photo \(number)", isLocated: number % 3 == 0)
        }

        /// The photo and the video of a Live Photo.
        mutating func pair() -> (photo: Data, video: Data) {
            number += 1
            let identifier = "2B9A6DB0-5C3C-4E32-9E0A-\(number)"
            let name = "photo \(number)"
            return (LivePhotoFiles.photo(name, identifier: identifier), LivePhotoFiles.video(name, identifier: identifier))
        }

        mutating func name() -> String {
            let folder = ["", "", "sub/", "sub/deep/"][random(4)]
            return "\(folder)IMG_\(random(40)).jpg"
        }
    }

    @Test func `after hostile events an audit lists exactly the missing photos`() async throws {
        try await PhotoHome.play { home, store in
            var world = World(Self.seed)
            for _ in 0..<5 { try home.write(world.content(), to: "camera/old-\(world.random(1_000_000)).jpg") }
            let old = try FileManager.default.contentsOfDirectory(atPath: home.camera.path)
            #expect(try await home.stormy("watch", "add", "--recursive", home.camera.path).status == 0)
            for _ in 0..<Self.count { try await happen(&world, home, store) }
            // At the end the folder is complete, the server responds, and time passes.
            if world.isAway { try back(&world, home) }
            for name in world.growing { try home.write(world.content(), to: "camera/" + name) }
            world.photos = Array(Set(world.photos + world.growing))
            home.server.mount(store)
            try await home.driver.startAgent()
            for _ in 0..<3 {
                try await home.driver.examineFolders()
                try await home.driver.advance(by: .seconds(86_400))
            }
            let stored = store.digests.values
            #expect(Set(stored).count == stored.count, "a photo arrived twice")
            // The photos that existed before are not uploaded.
            let first = try await home.stormy("audit", "--verify", "--json", home.camera.path)
            let absent = try missing(first)
            #expect(absent == Set(old), "\(absent.symmetricDifference(old)) \(first.errors)")
            // More gaps are planted: photos that the server loses, and photos after the end of the watch.
            #expect(try await home.stormy("watch", "remove", home.camera.path).status == 0)
            var gaps = Set(old)
            for _ in 0..<3 {
                let name = "late-\(world.random(1_000_000)).jpg"
                try home.write(world.content(), to: "camera/" + name)
                gaps.insert(name)
            }
            let rows = try JSONSerialization.jsonObject(with: Data(first.output.utf8)) as? [[String: Any]] ?? []
            for row in rows where row["state"] as? String == "uploaded" && world.random(5) == 0 {
                guard let url = (row["url"] as? String).flatMap({ URL(string: $0) }), let file = row["file"] as? String else {
                    continue
                }
                let place = store.directory.appendingPathComponent(url.lastPathComponent)
                // Two files with equal content have one copy on the server.
                try? FileManager.default.removeItem(at: place)
                gaps.insert(relative(file))
            }
            let last = try await missing(home.stormy("audit", "--verify", "--json", home.camera.path))
            #expect(last == gaps, "\(last.symmetricDifference(gaps))")
        }
    }

    private func relative(_ file: String) -> String { String(file.components(separatedBy: "/camera/").last ?? "") }

    /// The files of an audit that are not uploaded, relative to the folder.
    private func missing(_ audit: VirtualHome.Result) throws -> Set<String> {
        let rows = try JSONSerialization.jsonObject(with: Data(audit.output.utf8)) as? [[String: Any]] ?? []
        #expect(!rows.isEmpty)
        return Set(rows.filter { $0["state"] as? String != "uploaded" }.compactMap { ($0["file"] as? String).map(relative) })
    }

    private func back(_ world: inout World, _ home: VirtualHome) throws {
        try FileManager.default.moveItem(at: home.folder.appendingPathComponent("away"), to: home.camera)
        world.isAway = false
    }

    private func happen(_ world: inout World, _ home: VirtualHome, _ store: DavStore) async throws {
        let camera = home.camera
        func url(_ name: String) -> URL { camera.appendingPathComponent(name) }
        let isThere = !world.isAway
        switch world.random(16) {
        case 0...3 where isThere:
            // A new photo, or another photo with the name of an earlier photo.
            let name = world.name()
            if world.random(4) == 0 {
                // The two files of a Live Photo arrive in any order, and sometimes the video does not arrive.
                let pair = world.pair()
                let video = name.replacing(".jpg", with: ".mov")
                if world.random(2) == 0 { try home.write(pair.video, to: "camera/" + video) }
                try home.write(pair.photo, to: "camera/" + name)
                if world.random(2) == 0 {
                    try await home.driver.examineFolders()
                    try home.write(pair.video, to: "camera/" + video)
                }
            } else {
                try home.write(world.content(), to: "camera/" + name)
            }
            if !world.photos.contains(name) { world.photos.append(name) }
            world.growing.removeAll { $0 == name }
        case 4 where isThere:
            // A photo that is still being written: the file is too short.
            let name = world.name()
            try home.write(world.content().prefix(20), to: "camera/" + name)
            world.photos.removeAll { $0 == name }
            if !world.growing.contains(name) { world.growing.append(name) }
        case 5 where isThere && !world.growing.isEmpty:
            let name = world.growing.remove(at: world.random(world.growing.count))
            try home.write(world.content(), to: "camera/" + name)
            world.photos.append(name)
        case 6 where isThere && !world.photos.isEmpty:
            let (from, to) = (world.photos[world.random(world.photos.count)], world.name())
            guard from != to, !world.growing.contains(to) else { return }
            try FileManager.default.createDirectory(at: url(to).deletingLastPathComponent(), withIntermediateDirectories: true)
            _ = rename(url(from).path, url(to).path)
            world.photos.removeAll { $0 == from || $0 == to }
            world.photos.append(to)
        case 7 where isThere && !world.photos.isEmpty:
            let name = world.photos.remove(at: world.random(world.photos.count))
            try FileManager.default.removeItem(at: url(name))
        case 8:
            if world.isAway {
                try back(&world, home)
            } else {
                try FileManager.default.moveItem(at: camera, to: home.folder.appendingPathComponent("away"))
                world.isAway = true
            }
        // The server fails, or reports success for everything and stores nothing.
        case 9, 10: home.server.route(nil, "/photos/*", .status([503, 500, 401, 507, 200, 201][world.random(6)]))
        case 11, 12: home.server.mount(store)
        case 13:
            await home.driver.killAgent()
            try await home.driver.startAgent()
        case 14: try await home.driver.stepClock(by: .seconds([-7_200.0, 3_600, -86_400, 90_000][world.random(4)]))
        default: try await home.driver.advance(by: .seconds([1, 11, 700][world.random(3)]))
        }
        if world.random(3) == 0 { try await home.driver.examineFolders() }
        if world.random(4) == 0 { try await home.driver.advance(by: .seconds(20)) }
    }
}
