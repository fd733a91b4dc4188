/// The phase of the app: in the foreground or in the background.
///
/// Differs from Apple: an app without windows is `.active` while a command that a user started runs. When the command has
/// returned, the phase changes to `.inactive` and then to `.background`. A process that the agent launched is always in the phase
/// `.background`.
public enum ScenePhase: Comparable, Hashable, Sendable {
    case background
    case inactive
    case active
}

/// The values that a scene can read from its environment.
@MainActor
public struct EnvironmentValues {
    /// The phase of the app. If the agent started the process, the phase is always `.background`.
    public internal(set) var scenePhase = ScenePhase.background

    /// The models that the app provided with ``Scene/environment(_:)``, by type.
    var objects: [ObjectIdentifier: AnyObject] = [:]

    static var current = EnvironmentValues()
}

/// A property wrapper that reads a value of the environment, for example `@Environment(\.scenePhase) private var scenePhase`. The
/// wrapper can also read a model that ``Scene/environment(_:)`` provides, for example `@Environment(Model.self) private var
/// model`.
@MainActor
@propertyWrapper
public struct Environment<Value> {
    private let read: @MainActor () -> Value

    /// - Parameter keyPath: the path of the value to read, for example `\.scenePhase`.
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { read = { EnvironmentValues.current[keyPath: keyPath] } }

    /// - Parameter objectType: the type of the model. If no scene provides the model, reading the property stops the program with
    ///   an error.
    public init(_ objectType: Value.Type) where Value: AnyObject & Observable {
        read = {
            guard let object = EnvironmentValues.current.object(objectType) else {
                preconditionFailure("no scene has a \(objectType): add one with environment(_:)")
            }
            return object
        }
    }

    /// - Parameter objectType: the type of the model. The value is `nil` if no scene provides the model.
    public init<Model: AnyObject & Observable>(_ objectType: Model.Type) where Value == Model? {
        read = { EnvironmentValues.current.object(objectType) }
    }

    /// The current value.
    public var wrappedValue: Value { read() }
}

extension Scene {
    /// Calls `action` with the old and the new value when `value` has changed.
    ///
    /// After each change of the scene phase, the body of the scene is evaluated again and the values are compared.
    public func onChange<V: Equatable>(
        of value: V, initial: Bool = false, _ action: @escaping (_ oldValue: V, _ newValue: V) -> Void
    ) -> some Scene {
        ObservingScene(content: self, observer: ChangeObserver(value, initial: initial, action))
    }

    /// Calls `action` without arguments when `value` has changed.
    public func onChange<V: Equatable>(of value: V, initial: Bool = false, _ action: @escaping () -> Void) -> some Scene {
        ObservingScene(content: self, observer: ChangeObserver(value, initial: initial) { _, _ in action() })
    }

    /// Calls `action` with the new value when `value` has changed. Apple introduced this form in iOS 14 and deprecated it in iOS
    /// 17.
    public func onChange<V: Equatable>(of value: V, perform action: @escaping (_ newValue: V) -> Void) -> some Scene {
        ObservingScene(content: self, observer: ChangeObserver(value, initial: false) { _, new in action(new) })
    }
}

/// A value that a scene observes (from one evaluation of the scene's body), and the action for a changed value.
struct ChangeObserver {
    let isInitial: Bool
    private let value: Any
    private let differs: (Any) -> Bool
    private let perform: (Any) -> Void

    init<V: Equatable>(_ value: V, initial: Bool, _ action: @escaping (V, V) -> Void) {
        self.value = value
        isInitial = initial
        differs = { ($0 as? V) != value }
        perform = { old in action(old as? V ?? value, value) }
    }

    func act() { perform(value) }

    /// - Parameter old: the observer at the same position in the previous evaluation of the body.
    func act(ifDifferentFrom old: ChangeObserver) {
        if differs(old.value) { perform(old.value) }
    }
}

/// A scene that also observes a value.
struct ObservingScene<Content: Scene>: Scene, SceneParts {
    let content: Content
    let observer: ChangeObserver

    var body: Never { preconditionFailure("a primitive scene has no body") }

    var parts: ScenePartsList {
        var parts = content.collectParts()
        parts.observers.append(observer)
        return parts
    }
}

/// Applies scene phases to an app and calls the observers of changed values.
@MainActor
final class SceneObservation {
    private let evaluate: () -> [ChangeObserver]
    private var observers: [ChangeObserver]

    /// - Parameter evaluate: a closure that evaluates the app's body again and returns the observers.
    init(_ evaluate: @escaping () -> [ChangeObserver]) {
        self.evaluate = evaluate
        observers = evaluate()
        for observer in observers where observer.isInitial { observer.act() }
    }

    func enter(_ phase: ScenePhase) {
        guard EnvironmentValues.current.scenePhase != phase else { return }
        EnvironmentValues.current.scenePhase = phase
        let now = evaluate()
        // If the number of observers has changed, no action is called, because it is not known which old observer belongs to
        // which new observer.
        if now.count == observers.count {
            for (old, new) in zip(observers, now) { new.act(ifDifferentFrom: old) }
        }
        observers = now
    }
}
