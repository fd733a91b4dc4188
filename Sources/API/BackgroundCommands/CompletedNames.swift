import ArgumentParser
import BackgroundLedger
import BackgroundRuntime

// The names that a shell offers when the user presses Tab. Reading the names creates no files. Before the first use of the app,
// and after an error, no names are offered, because a shell cannot show a message at this moment.
extension CompletionKind {
    /// The numbers of the unfinished transfers, and "all".
    package static var transferIDs: CompletionKind {
        .custom { _, _, _ in ledgerNames { try $0.unfinishedTransfers().compactMap(\.id).map(String.init) } + ["all"] }
    }

    /// The identifiers of the pending requests.
    static var requests: CompletionKind { .custom { _, _, _ in ledgerNames { try $0.requests().map(\.identifier) } } }

    /// The identifiers of requests, and of sessions with unfinished transfers.
    static var requestsAndSessions: CompletionKind {
        .custom { _, _, _ in
            ledgerNames { try $0.requests().map(\.identifier) + Set($0.unfinishedTransfers().map(\.session)).sorted() }
        }
    }

    private static func ledgerNames(_ read: (LedgerTransaction) throws -> [String]) -> [String] {
        AppRuntime.shared.replaceMissingLedger()
        return (try? AppRuntime.shared.ledger().read(read)) ?? []
    }
}
