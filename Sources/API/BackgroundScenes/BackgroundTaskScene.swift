extension Scene {
    /// Handles background work of this kind.
    ///
    /// The launch ends when `action` returns; one for the events of a background session also waits for the delegates of that session, until
    /// they have heard what there is. The launch continues while attempts at transfers that it began are under way, for 30 s at most.
    ///
    /// When its time runs out the action's task is cancelled; if it does not return within the grace time the process is killed and the
    /// next launch delayed.
    public func backgroundTask<D: Sendable, R: Sendable>(
        _ task: BackgroundTask<D, R>, action: @escaping @Sendable (D) async -> R
    ) -> some Scene {
        BackgroundTaskScene(content: self) { BackgroundLaunch.handle(task, action: action) }
    }
}

/// A scene with one more action.
struct BackgroundTaskScene<Content: Scene>: Scene, SceneParts {
    let content: Content
    let makeKnown: () -> Void

    var body: Never { preconditionFailure("a primitive scene has no body") }

    var parts: ScenePartsList {
        var parts = content.collectParts()
        parts.actions.append(makeKnown)
        return parts
    }
}
