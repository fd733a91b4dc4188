/// A part of an app. On a desktop without windows of ours a scene carries what the app does in the background.
@MainActor
public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
}

extension Never: Scene {
    public var body: Never { preconditionFailure("Never has no body") }
}

/// Combines scenes.
@MainActor
@resultBuilder
public enum SceneBuilder {
    /// One scene.
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }

    /// Several scenes.
    public static func buildBlock<First: Scene, each Rest: Scene>(
        _ first: First, _ rest: repeat each Rest
    ) -> TupleScene<First, repeat each Rest> {
        TupleScene(first, repeat each rest)
    }
}

/// Several scenes.
public struct TupleScene<First: Scene, each Rest: Scene>: Scene {
    let first: First
    let rest: (repeat each Rest)

    init(_ first: First, _ rest: repeat each Rest) {
        self.first = first
        self.rest = (repeat each rest)
    }

    public var body: Never { preconditionFailure("a primitive scene has no body") }
}

/// A scene with windows, so that code written for iOS compiles as it reads.
///
/// Differs from Apple: no window is opened; the content is never built.
public struct WindowGroup<Content: View>: Scene {
    /// - Parameter content: compiled, and never called.
    public init(@ViewBuilder content: @escaping () -> Content) {}

    /// - Parameters:
    ///   - id: of windows that nobody opens.
    ///   - content: compiled, and never called.
    public init(id: String, @ViewBuilder content: @escaping () -> Content) {}

    /// - Parameters:
    ///   - title: of windows that nobody opens.
    ///   - content: compiled, and never called.
    public init(_ title: some StringProtocol, @ViewBuilder content: @escaping () -> Content) {}

    /// - Parameters:
    ///   - title: of windows that nobody opens.
    ///   - id: of the same.
    ///   - content: compiled, and never called.
    public init(_ title: some StringProtocol, id: String, @ViewBuilder content: @escaping () -> Content) {}

    public var body: Never { preconditionFailure("a primitive scene has no body") }
}

/// A scene without a window. Its action runs when a person starts the app. The app leaves when the action has returned, and everything
/// that the app began is durable. Beyond Apple.
public struct Worker: Scene {
    let action: @Sendable () async -> Void

    /// - Parameter action: what the app does when a person starts it.
    public init(action: @escaping @Sendable () async -> Void = {}) { self.action = action }

    public var body: Never { preconditionFailure("a primitive scene has no body") }
}

/// What the scenes of an app amount to.
struct ScenePartsList {
    /// Each makes its action known: `BackgroundLaunch.handle` with what the scene was given.
    var actions: [() -> Void] = []
    var workers: [@Sendable () async -> Void] = []
    var observers: [ChangeObserver] = []
}

/// A primitive scene that knows its parts; any other has a body that does.
@MainActor
protocol SceneParts {
    var parts: ScenePartsList { get }
}

extension WindowGroup: SceneParts {
    var parts: ScenePartsList { ScenePartsList() }
}

extension Worker: SceneParts {
    var parts: ScenePartsList { ScenePartsList(workers: [action]) }
}

extension TupleScene: SceneParts {
    var parts: ScenePartsList {
        var all = first.collectParts()
        func add(_ scene: some Scene) {
            let parts = scene.collectParts()
            all.actions += parts.actions
            all.workers += parts.workers
            all.observers += parts.observers
        }
        repeat add(each rest)
        return all
    }
}

extension Scene {
    func collectParts() -> ScenePartsList {
        if let primitive = self as? any SceneParts { return primitive.parts }
        return body.collectParts()
    }
}

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
