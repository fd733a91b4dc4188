import BackgroundScheduling
import Foundation

/// A kind of background work that a scene can handle.
///
/// Differs from Apple: `processing(_:)` exists too; there `BGTaskScheduler.register` is the only way.
public struct BackgroundTask<Request: Sendable, Response: Sendable>: Sendable {
    let kind: LaunchKind
    let matches: @Sendable (String) -> Bool
    let request: @Sendable (String) -> Request
}

extension BackgroundTask where Request == Void, Response == Void {
    /// An app refresh with exactly this identifier, from the permitted list.
    public static func appRefresh(_ identifier: String) -> Self {
        Self(kind: .appRefresh, matches: { $0 == identifier }, request: { _ in })
    }

    /// A processing task with exactly this identifier. Beyond Apple.
    public static func processing(_ identifier: String) -> Self {
        Self(kind: .processing, matches: { $0 == identifier }, request: { _ in })
    }

    /// Finished transfers of the background session with exactly this identifier.
    public static func urlSession(_ identifier: String) -> Self {
        Self(kind: .urlSession, matches: { $0 == identifier }, request: { _ in })
    }
}

extension BackgroundTask where Request == String, Response == Void {
    /// Finished transfers of any background session; the action receives its identifier.
    public static var urlSession: Self {
        Self(kind: .urlSession, matches: { _ in true }, request: { $0 })
    }

    /// Finished transfers of the background sessions that `matching` accepts.
    public static func urlSession(matching: @escaping @Sendable (String) -> Bool) -> Self {
        Self(kind: .urlSession, matches: matching, request: { $0 })
    }
}

extension Scene {
    /// Handles background work of this kind.
    ///
    /// The launch ends when `action` returns. When its time runs out the action's task is cancelled; if it does
    /// not return within the grace time the process is killed and the next launch delayed.
    public func backgroundTask<D: Sendable, R: Sendable>(
        _ task: BackgroundTask<D, R>, action: @escaping @Sendable (D) async -> R
    ) -> some Scene {
        BackgroundTaskScene(
            content: self,
            action: .init(kind: task.kind, matches: task.matches, run: { _ = await action(task.request($0)) }))
    }
}

/// A scene with one more action.
struct BackgroundTaskScene<Content: Scene>: Scene, SceneParts {
    let content: Content
    let action: TaskHandlers.SceneAction

    init(content: Content, action: TaskHandlers.SceneAction) {
        self.content = content
        self.action = action
    }

    var body: Never { preconditionFailure("a primitive scene has no body") }

    var parts: ScenePartsList {
        var parts = content.collectParts()
        parts.actions.append(action)
        return parts
    }
}
