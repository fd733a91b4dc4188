import FaultyServer
import Foundation
import ServerScripts
import Testing

extension EndToEnd {
    /// Tests of watched folders with a real agent and a real file system.
    @Suite struct Watch {
        @Test func `photos in a watched folder arrive, also after the agent was killed`() async throws {
            let server = try await FaultyServer.start()
            let home = try Home()
            let store = try DavStore(prefix: "/up", directory: home.folder.appendingPathComponent("server"))
            server.mount(store)
            try home.configure("[upload.destinations.nas]\nkind = \"webdav\"\nurl = \"\(server.url)/up/\"\n")
            let camera = home.folder.appendingPathComponent("camera")
            try FileManager.default.createDirectory(at: camera, withIntermediateDirectories: true)
            func photo(_ name: String, in folder: URL) throws {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                try (JPEG.withoutPosition + Data(name.utf8)).write(to: folder.appendingPathComponent(name))
            }
            try photo("old.jpg", in: camera)
            let added = try home.stormy("watch", "add", "--recursive", camera.path)
            #expect(added.status == 0, "\(added)")
            // The second photo is in a folder that did not exist when the folder was added.
            try photo("one.jpg", in: camera)
            try photo("two.jpg", in: camera.appendingPathComponent("new/deeper"))
            try home.wait("two photos") { _ in Set(store.files) == ["/one.jpg", "/two.jpg"] ? true : nil }
            try home.killAgent()
            try photo("three.jpg", in: camera)
            #expect(try home.stormy("why").status == 0)
            try home.wait("three photos") { _ in Set(store.files) == ["/one.jpg", "/two.jpg", "/three.jpg"] ? true : nil }
            #expect(try home.stormy("audit", camera.path + "/one.jpg", camera.path + "/new").status == 0)
        }
    }

    /// Tests of watched folders with systemd's user manager.
    @Suite(.enabled(if: UserManager.obstacle == nil, "\(UserManager.obstacle ?? "")")) struct WatchLogin {
        @Test func `the agent exits, and a new photo starts another agent`() async throws {
            let server = try await FaultyServer.start()
            let home = try Home(server: server, desktop: try Desktop())
            let manager = try UserManager(home)
            try manager.start()
            let store = try DavStore(prefix: "/up", directory: home.folder.appendingPathComponent("server"))
            server.mount(store)
            try home.configure("[upload.destinations.nas]\nkind = \"webdav\"\nurl = \"\(server.url)/up/\"\n")
            let deep = home.folder.appendingPathComponent("my camera/100% deep")
            try FileManager.default.createDirectory(at: deep, withIntermediateDirectories: true)
            let added = try home.stormy("watch", "add", "--recursive", deep.deletingLastPathComponent().path)
            #expect(added.status == 0, "\(added)")
            try home.wait("the exit of the agent") { try $0.fact(.absence) }
            try home.waitForAgentExit()
            let unit = "background-agent-stormy.path"
            #expect(try manager.systemctl("is-active", unit).output == "active\n")
            try JPEG.withoutPosition.write(to: deep.appendingPathComponent("one.jpg"))
            try home.wait("the photo") { _ in store.files == ["/one.jpg"] ? true : nil }
            #expect(try home.stormy("watch", "remove", deep.deletingLastPathComponent().path).status == 0)
            #expect(try home.stormy("quit").status == 0)
        }
    }
}
