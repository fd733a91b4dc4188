import ArgumentParser
import BackgroundRuntime
import Stormy
import StormyConfiguration

extension CompletionKind {
    /// The names of the places.
    static var places: CompletionKind {
        .custom { _, _, _ in
            ((try? StormyStore.inspect(in: AppRuntime.shared.directories.data)?.places()) ?? []).map(\.name)
        }
    }

    /// The names of the configured destinations.
    static var destinations: CompletionKind {
        .custom { _, _, _ in
            ((try? Configuration.load(path: Destinations.file))?.upload.destinations.keys).map { $0.sorted() } ?? []
        }
    }
}
