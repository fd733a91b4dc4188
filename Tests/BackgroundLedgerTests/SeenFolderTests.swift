@testable import BackgroundLedger
import Foundation
@testable import ProcessSupport
import Testing

/// Tests that processes recognize the folder of a path, with equal mounts and with different mounts.
@Suite struct SeenFolderTests {
    private let test: TestLedger
    private var place: String { test.folder.appendingPathComponent("place").path }

    init() throws {
        test = try TestLedger()
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    }

    private func replace() throws {
        try FileManager.default.moveItem(atPath: place, toPath: place + ".old")
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    }

    @Test func `a process with the same mounts finds a folder that was replaced`() throws {
        let folder = try #require(SeenFolder(place))
        try replace()
        #expect(folder.isAt(place))
        #expect(SeenFolder(place)?.isSame(as: folder) == true)
    }

    @Test(arguments: ["4026539999:2:1", nil])
    func `a process with other mounts finds the same folder and no other`(_ view: String?) throws {
        let seen = try #require(SeenFolder(place))
        let folder = SeenFolder(view: view, folder: seen.folder)
        #expect(folder.isAt(place))
        try replace()
        #expect(!folder.isAt(place))
        try FileManager.default.removeItem(atPath: place)
        #expect(!folder.isAt(place))
    }

    @Test func `a file in a folder does not change the folder`() throws {
        let folder = SeenFolder(view: nil, folder: try #require(SeenFolder(place)).folder)
        try Data("file".utf8).write(to: URL(fileURLWithPath: place + "/file"))
        #expect(folder.isAt(place))
    }

    @Test func `two processes with unknown mounts are compared by the folder`() {
        #expect(!SeenFolder(view: nil, folder: "1:1").isSame(as: SeenFolder(view: nil, folder: "2:2")))
        #expect(SeenFolder(view: nil, folder: "1:1").isSame(as: SeenFolder(view: nil, folder: "1:1")))
    }

    @Test(arguments: ["1:2:3", nil]) func `the text of a row gives the same folder`(_ view: String?) {
        let folder = SeenFolder(view: view, folder: "4:5")
        #expect(SeenFolder(text: folder.text) == folder)
    }

    @Test func `a drive that is not connected is detected by its mount point`() throws {
        let own = try #require(SeenFolder(place))
        #expect(own.absentMount == nil)
        // No file system is mounted at the folder. A file system is always mounted at `/proc`.
        let away = SeenFolder(view: own.view, folder: own.folder, mount: place)
        #expect(away.absentMount == place)
        #expect(SeenFolder(view: own.view, folder: own.folder, mount: "/proc").absentMount == nil)
        #expect(SeenFolder("/proc/self")?.mount == "/proc")
        // A container has other mounts.
        #expect(SeenFolder(view: "1:2:3", folder: own.folder, mount: place).absentMount == nil)
        // If a mount point disappeared together with its drive, the folder is treated as missing.
        #expect(SeenFolder(view: own.view, folder: own.folder, mount: place + "/gone").absentMount == nil)
    }

    @Test(arguments: ["/run/media/me/my stick", "/mnt/50%", "/mnt/a\nb", nil])
    func `the text of a row gives the same mount point`(_ mount: String?) {
        let folder = SeenFolder(view: "1:2:3", folder: "4:5", mount: mount)
        #expect(SeenFolder(text: folder.text) == folder)
    }

    @Test(arguments: ["", "1:2", "a b c d"]) func `an invalid text gives no folder`(_ text: String) {
        #expect(SeenFolder(text: text) == nil)
    }

    /// The partial file of a cancelled download is in the folder of its destination.
    @Test func `a part is taken only beside the same destination in the same folder`() {
        func record(_ destination: String?, _ folder: SeenFolder?) -> TransferRecord {
            var record = TransferRecord(
                session: "s", key: "k", kind: .download, method: "GET", url: "http://127.0.0.1/", headers: [], now: TestLedger.now
            )
            (record.destination, record.destinationFolder) = (destination, folder?.text)
            return record
        }
        let (here, there) = (SeenFolder(view: "1", folder: "1:1"), SeenFolder(view: "2", folder: "2:2"))
        #expect(record("/a", here).hasDestination(of: record("/a", here)))
        #expect(!record("/a", here).hasDestination(of: record("/a", there)))
        #expect(!record("/a", here).hasDestination(of: record("/b", here)))
        // An earlier version of the program did not record the folder.
        #expect(record("/a", here).hasDestination(of: record("/a", nil)))
        var new = record(nil, nil)
        new.adoptDestination(of: record("/a", there))
        #expect(new.hasDestination(of: record("/a", there)) && new.destinationFolder == there.text)
    }
}
