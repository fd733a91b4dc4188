import ArgumentParser
import BackgroundCommands
import Foundation
import ProcessSupport
import Stormy

struct WatchVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Adds, lists and removes folders whose new photos are uploaded.",
        discussion: "Example:\n  stormy watch add ~/Pictures --recursive\n  stormy watch list",
        subcommands: [Add.self, List.self, Remove.self])

    enum Since: String, ExpressibleByArgument, CaseIterable {
        case now
        case all
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Adds a folder. New photos in the folder are uploaded without further commands.",
            discussion: """
                A photo is uploaded when it is unchanged for 10 s. Hidden files, and files with names such as photo.jpg.part, are \
                not uploaded.

                Example:
                  stormy watch add ~/Pictures --to home --recursive
                """)

        @Argument(help: "The folder.", completion: .directory) var folder: String
        @Option(help: "The name of a configured destination. Default: the default destination.", completion: .destinations)
        var to: String?
        @Option(help: "Which photos to upload: all, or only photos that are added from now on.") var since = Since.now
        @Flag(help: "Also watch the folders inside the folder, except hidden and linked folders.") var recursive = false
        @Option(help: "When to upload: now, or charging (on external power and an unmetered network).")
        var when = UploadVerb.StartCondition.now

        func run() async throws {
            try StormyTool.configure()
            let destination = try Destinations().named(to)
            var isFolder: ObjCBool = false
            let path = WatchVerb.absolute(folder)
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
                throw CommandFailure(.notFound, "\(path): no such folder")
            }
            guard isFolder.boolValue else { throw CommandFailure(.badData, "\(path) is not a folder") }
            let isOwn = try OwnFiles().contain(path)
            if isOwn { throw CommandFailure(.badData, "\(path): the folder belongs to Stormy") }
            do {
                _ = try WatchedFolders(store: StormyStore.open()).add(
                    path, to: destination.name, isRecursive: recursive, isForLater: when == .charging,
                    includesExisting: since == .all)
            } catch let failure as WatchedFolders.Failure {
                switch failure {
                case .isWatched: throw CommandFailure(.badData, failure.description)
                case .cannotRead: throw CommandFailure(.inputOutput, failure.description)
                }
            }
            let what = since == .all ? "The photos" : "New photos"
            Output.line("Watching \(path). \(what) in the folder are uploaded to \(destination.name).")
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the watched folders.", discussion: "Example:\n  stormy watch list --json")

        @Flag(help: "Print JSON.") var json = false

        private struct Row: Encodable {
            let folder: String
            let destination: String
            let isRecursive: Bool
            let when: String
            let isReadable: Bool
        }

        func run() async throws {
            try StormyTool.configure()
            let store = try StormyStore.toRead()
            let areOn = try WatchedFolders(store: store).areOn
            let rows = try store.folderWatches().map { watch in
                Row(
                    folder: watch.path, destination: watch.destination, isRecursive: watch.isRecursive,
                    when: watch.isForLater ? "charging" : "now", isReadable: access(watch.path, R_OK | X_OK) == 0)
            }
            if json { return try Output.json(rows) }
            if !rows.isEmpty, !areOn {
                Output.line("The folders are not watched, because of `stormy quit`. To watch them again: stormy watch add FOLDER")
            }
            if rows.isEmpty { Output.line("No folder is watched. Add a folder: stormy watch add FOLDER") }
            for row in rows {
                var parts = [row.folder, "to \(row.destination)"]
                if row.isRecursive { parts.append("with the folders inside") }
                if row.when == "charging" { parts.append("when charging") }
                if !row.isReadable { parts.append("(the folder cannot be read now)") }
                Output.line(parts.joined(separator: "  "))
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes a folder from the watched folders. No file is removed, and queued photos are still uploaded.",
            discussion: "Example:\n  stormy watch remove ~/Pictures")

        @Argument(help: "The folder.", completion: .directory) var folder: String

        func run() async throws {
            try StormyTool.configure()
            let path = WatchVerb.absolute(folder)
            let store = try StormyStore.open()
            let watches = try store.folderWatches().filter { $0.path == path }
            guard !watches.isEmpty else { throw CommandFailure(.notFound, "\(path) is not watched") }
            for watch in watches { try WatchedFolders(store: store).remove(watch) }
            Output.line("\(path) is not watched any more.")
        }
    }

    /// Returns the absolute path of a folder, without a slash or a dot at its end.
    private static func absolute(_ folder: String) -> String {
        var path = PathName.absolute(folder)
        while path.count > 1, path.hasSuffix("/") || path.hasSuffix("/.") { path.removeLast() }
        return path
    }
}
