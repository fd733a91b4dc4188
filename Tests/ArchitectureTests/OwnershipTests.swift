import Foundation
import Testing

/// Tests that each kind of change is made at only one place in the sources.
@Suite struct OwnershipTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    /// `TransferLife` decides the state of a transfer, and one file writes the row of the transfer.
    @Test func `only TransferLife changes the state of a transfer`() throws {
        let columns = "state|isAdopted|adoptableUntil|nextAttemptAt|finishedAt|isSuspended|isFinishing|resumeToken|keptUntil"
        let assignment = try Regex("(transfer|record|known|earlier|old|new)\\.(\(columns)) = ")
        let sources = Self.root.appendingPathComponent("Sources").path
        var looked = 0
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources) where path.hasSuffix(".swift") {
            let text = try text("Sources/" + path)
            guard text.contains("TransferRecord") || text.contains("transaction.transfer(") else { continue }
            looked += 1
            // Regular expressions are slow, and most files do not contain any of these columns.
            guard columns.split(separator: "|").contains(where: { text.contains(".\($0) = ") }) else { continue }
            #expect(text.firstMatch(of: assignment) == nil, "\(path): only TransferLife changes a transfer's state")
        }
        #expect(looked > 10)
    }

    /// Some SQL statements change many rows together, when a time is reached or after the clock was wrong. Only the files of this
    /// list may contain SQL statements that change many rows.
    @Test(
        arguments: [
            (
                "transfer", "state|isAdopted|adoptableUntil|nextAttemptAt|finishedAt|isSuspended|keptUntil",
                ["TransferQueue.swift", "ClockMistakes.swift"]
            ),
            ("request", "\\w+", ["ClockMistakes.swift"]),
            ("launch", "startedAt|stopReason|result|outcome|detail", ["ClockMistakes.swift"]),
        ] as [(String, String, Set<String>)])
    func `only the listed files change many rows at once`(_ table: String, _ columns: String, _ files: Set<String>) throws {
        let statement = try Regex("UPDATE \(table) SET[^\"]*\\b(\(columns))\\b")
        let store = Self.root.appendingPathComponent("Sources/Store/BackgroundLedger").path
        var found: Set<String> = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: store) where path.hasSuffix(".swift") {
            if try text("Sources/Store/BackgroundLedger/" + path).firstMatch(of: statement) != nil { found.insert(path) }
        }
        #expect(found == files)
    }

    /// Only the agent and the ledger may call `record` on a transaction. Apps and commands change the ledger with other methods.
    @Test func `only the agent and the ledger record results in a transaction`() throws {
        let sources = Self.root.appendingPathComponent("Sources").path
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources) where path.hasSuffix(".swift") {
            guard !path.hasPrefix("Agent/BackgroundAgent/"), !path.hasPrefix("Store/BackgroundLedger/") else { continue }
            #expect(try !text("Sources/" + path).contains("transaction.record("), "\(path)")
        }
    }

    /// Swift's list of arguments is empty if the system cannot open a file at the start of the process. With an empty list, a
    /// command would print its help.
    @Test func `only ThisProcess has the arguments of the process`() throws {
        let sources = Self.root.appendingPathComponent("Sources").path
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources) where path.hasSuffix(".swift") {
            guard !path.hasPrefix("Examples/"), !path.hasPrefix("TestKit/") else { continue }
            let lines = try text("Sources/" + path).split(separator: "\n").filter { !$0.contains("//") }
            #expect(!lines.contains { $0.contains("CommandLine.arg") }, "\(path)")
        }
    }

    /// An earlier version interpreted error numbers at several places. That version ended uploads whose file could temporarily
    /// not be opened.
    @Test func `only FileFault decides what an error number means for a file`() throws {
        let numbers = try Regex(
            "(^|[^.A-Za-z])(ENOENT|ENOTDIR|EISDIR|ELOOP|ENXIO|EEXIST|EINVAL|ENOSYS|EOPNOTSUPP|EMLINK|EXDEV|ENAMETOOLONG|EFBIG|ENOSPC|EDQUOT|EACCES|EPERM"
                + "|EROFS|EIO|EMFILE|ENFILE|ENOMEM|ENODATA|ESTALE|EBUSY)\\b")
        for folder in [
            "Store/Spool", "Store/BackgroundLedger", "Store/SQLiteFiles", "Agent/BackgroundAgent/Files", "Stormy/Stormy",
        ] {
            let place = Self.root.appendingPathComponent("Sources/" + folder).path
            for path in try FileManager.default.subpathsOfDirectory(atPath: place) where path.hasSuffix(".swift") {
                let lines = try text("Sources/\(folder)/\(path)").split(separator: "\n").filter { !$0.contains("//") }
                for line in lines where line.firstMatch(of: numbers) != nil { Issue.record("\(folder)/\(path): \(line)") }
            }
        }
    }

    /// The section "Adding a way" in Uploads.md lists the files that a new protocol may need.
    @Test(arguments: ["multipart", "tus", "resumable", "s3", "nextcloud", "immich"])
    func `an upload protocol is named in at most five files`(_ way: String) throws {
        let sources = Self.root.appendingPathComponent("Sources").path
        let name = way.prefix(1).uppercased() + way.dropFirst()
        let mention = try Regex("(case |[( ,])\\.\(way)\\b|case \(way)$|(struct |rules = )\(name)Upload\\b")
            .anchorsMatchLineEndings()
        var files: Set<String> = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources) where path.hasSuffix(".swift") {
            // The test kit simulates servers for all protocols, and desktops that use some of the protocols.
            guard !path.hasPrefix("TestKit/") else { continue }
            let text = try text("Sources/" + path)
            guard text.contains(way) || text.contains(name), text.firstMatch(of: mention) != nil else { continue }
            files.insert(path)
        }
        #expect(files.contains("Core/TransferMachines/UploadKind.swift"))
        #expect(files.count <= 5, "\(files.sorted())")
    }

    /// If the text of a mutation is not in its file, the mutation tests nothing. Without this test, the mutation run would report
    /// the missing text only after hours.
    @Test func `the text of each mutation is in its file exactly once`() throws {
        struct Mutation: Decodable {
            let name: String
            let file: String
            let find: String
        }
        let list = Self.root.appendingPathComponent("Tests/Mutations/mutations.json")
        let mutations = try JSONDecoder().decode([Mutation].self, from: Data(contentsOf: list))
        #expect(mutations.count >= 18)
        for mutation in mutations {
            let count = try text(mutation.file).components(separatedBy: mutation.find).count - 1
            #expect(count == 1, "\(mutation.name): the text of the mutation occurs \(count) times in \(mutation.file)")
        }
    }

    /// A type that is spread over many files is difficult to read. Some types may be in more files, because they are split by
    /// table or by step.
    @Test func `a type is in at most three files`() throws {
        let exempt: Set<String> = ["LedgerTransaction", "StormyStore", "OrdinaryRun", "BackgroundSession"]
        let words = "(?:(?:@\\w+(?:\\([^)]*\\))?|public|package|private|fileprivate|final|indirect|open|nonisolated) )*"
        let declaration = try Regex("^\(words)(struct|class|enum|actor|protocol) (\\w+)")
        let addition = try Regex("^\(words)extension (\\w+)[ :]")
        var (declared, files): ([String: Int], [String: Set<String>]) = ([:], [:])
        for folder in ["Sources", "Tests/Laboratory"] {
            let place = Self.root.appendingPathComponent(folder).path
            for path in try FileManager.default.subpathsOfDirectory(atPath: place) where path.hasSuffix(".swift") {
                for line in try text(folder + "/" + path).split(separator: "\n") where line.first != " " {
                    if let name = line.firstMatch(of: declaration)?.output[2].substring {
                        declared[String(name), default: 0] += 1
                        files[String(name), default: []].insert(folder + "/" + path)
                    } else if let name = line.firstMatch(of: addition)?.output[1].substring {
                        files[String(name), default: []].insert(folder + "/" + path)
                    }
                }
            }
        }
        #expect(declared["TransferRecord"] == 1)
        for (name, files) in files where declared[name] == 1 && !exempt.contains(name) {
            #expect(files.count <= 3, "\(name): \(files.sorted())")
        }
    }
}
