/// A part of an app that declares background work. Apps of this module have no windows.
@MainActor
public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
}

extension Never: Scene {
    public var body: Never { preconditionFailure("the type Never has no body") }
}

/// Combines scenes into one scene.
@MainActor
@resultBuilder
public enum SceneBuilder {
    /// Returns the scene.
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }

    /// Returns a scene that contains several scenes.
    public static func buildBlock<First: Scene, each Rest: Scene>(
        _ first: First, _ rest: repeat each Rest
    ) -> TupleScene<First, repeat each Rest> {
        TupleScene(first, repeat each rest)
    }
}

/// A scene that contains several scenes.
public struct TupleScene<First: Scene, each Rest: Scene>: Scene {
    let first: First
    let rest: (repeat each Rest)

    init(_ first: First, _ rest: repeat each Rest) {
        self.first = first
        self.rest = (repeat each rest)
    }

    public var body: Never { preconditionFailure("a primitive scene has no body") }
}

/// A scene with windows. The declaration exists only so that code for iOS compiles.
///
/// Differs from Apple: no window is opened, and the content is never created.
public struct WindowGroup<Content: View>: Scene {
    /// - Parameter content: the content of the windows. This closure is compiled but never called.
    public init(@ViewBuilder content: @escaping () -> Content) {}

    /// - Parameters:
    ///   - id: the identifier of the windows. This value is not used.
    ///   - content: the content of the windows. This closure is compiled but never called.
    public init(id: String, @ViewBuilder content: @escaping () -> Content) {}

    /// - Parameters:
    ///   - title: the title of the windows. This value is not used.
    ///   - content: the content of the windows. This closure is compiled but never called.
    public init(_ title: some StringProtocol, @ViewBuilder content: @escaping () -> Content) {}

    /// - Parameters:
    ///   - title: the title of the windows. This value is not used.
    ///   - id: the identifier of the windows. This value is not used.
    ///   - content: the content of the windows. This closure is compiled but never called.
    public init(_ title: some StringProtocol, id: String, @ViewBuilder content: @escaping () -> Content) {}

    public var body: Never { preconditionFailure("a primitive scene has no body") }
}

/// A scene with an action and without a window. The action runs when a user starts the app. The process exits when the action has
/// returned and all work that the app began is stored. Apple's API has no equivalent.
public struct Worker: Scene {
    let action: @Sendable () async -> Void

    /// - Parameter action: the work that is done when a user starts the app.
    public init(action: @escaping @Sendable () async -> Void = {}) { self.action = action }

    public var body: Never { preconditionFailure("a primitive scene has no body") }
}

/// The actions, workers and observers of all scenes of an app.
struct ScenePartsList {
    /// The closures that register the actions of the scenes with `BackgroundLaunch.handle`, one closure for each action.
    var actions: [() -> Void] = []
    var workers: [@Sendable () async -> Void] = []
    var observers: [ChangeObserver] = []
}

/// A primitive scene: a scene that has no body and returns its parts. The body of every other scene consists of primitive scenes.
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
    /// Adds an action that handles background work of the kind `task`.
    ///
    /// The launch ends when `action` returns. A launch for the events of a background session also waits until the session's
    /// delegates have received all events. If the launch began transfers, the launch continues while an attempt at one of these
    /// transfers is running, for at most `BackgroundSettings.continuation` (default: 30 s).
    ///
    /// At the launch's time limit, the Swift task that runs the action is cancelled. If the action does not return within the
    /// grace time, the process is killed and the next launch is delayed.
    public func backgroundTask<D: Sendable, R: Sendable>(
        _ task: BackgroundTask<D, R>, action: @escaping @Sendable (D) async -> R
    ) -> some Scene {
        BackgroundTaskScene(content: self) { BackgroundLaunch.handle(task, action: action) }
    }
}

/// A scene with an additional background action.
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
