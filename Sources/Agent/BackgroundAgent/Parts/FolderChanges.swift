import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Makes requests due whose folders changed.
///
/// The content of a folder is compared with its content at the last launch. A change is therefore not lost if the agent is killed, if no
/// agent runs, or if the folder changes during a launch.
struct FolderChanges {
    /// The folders that requests wait for.
    private(set) var wanted: Set<WatchedFolder> = []
    /// The last observed content of each folder. A folder that is changing has no value.
    private var observed: [WatchedFolder: FolderSignature.Finding] = [:]

    mutating func record(_ folder: WatchedFolder, _ finding: FolderSignature.Finding) { observed[folder] = finding }

    mutating func recordChange() { observed = [:] }

    /// `true` if another program can detect the next change of the folders, so that the agent can exit.
    var areReported: Bool {
        wanted.allSatisfy { folder in observed[folder].map { $0.isReported && $0.folders != nil } ?? false }
    }

    /// The folders that must be watched while no agent is running.
    var folders: [String] { Set(wanted.flatMap { observed[$0]?.folders ?? [] }).sorted() }

    mutating func plan(_ pass: inout Pass) throws {
        let watches = try pass.transaction.watchedFolders()
        wanted = Set(watches.map(\.folder))
        observed = observed.filter { wanted.contains($0.key) }
        for watch in watches {
            guard let signature = observed[watch.folder]?.signature, signature != watch.signature,
                var request = try pass.transaction.request(watch.request),
                // A change during a launch is handled after the launch.
                try pass.transaction.phase(of: request) == .pending
            else { continue }
            _ = try pass.handle(.folderChanged, &request)
            try pass.transaction.setSignature(signature, of: watch)
            pass.log(.folderChanged, (.identifier, watch.request), (.folder, watch.folder.path))
        }
    }
}
