import Foundation
import Testing

@testable import Stormy

/// Tests that the store's file is created only if no other file has this name.
@Suite final class StoreFileTests {
    private let folder: URL
    private var path: String { folder.appendingPathComponent(StormyStore.fileName).path }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// The second symbolic link leads to itself. The error of the system is therefore not "file not found".
    @Test(arguments: ["/nowhere/stormy.sqlite", "stormy.sqlite"])
    func `a link that cannot be followed is reported and stays`(_ target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
        for _ in 0..<2 {
            #expect(throws: StormyStoreError.self) { try StormyStore(folder: folder) }
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == target)
        }
    }

    @Test func `a folder that has the name is reported and stays`() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: StormyStoreError.self) { try StormyStore(folder: folder) }
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test func `a command opens the store once, and again if another file has its name`() throws {
        let shared = SharedStore()
        let first = try shared.store(in: folder)
        #expect(try shared.store(in: folder) === first)
        // The first file is kept, so that the system gives the second file a different inode number.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
        let second = try shared.store(in: folder)
        #expect(second !== first && FileManager.default.fileExists(atPath: path))
        #expect(try SharedStore().store(in: folder) !== second)
    }
}
