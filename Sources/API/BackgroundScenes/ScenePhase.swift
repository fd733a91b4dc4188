/// Where a person stands to the app.
///
/// Differs from Apple: an app without windows is `.active` while the command that a person started runs, and goes over
/// `.inactive` to `.background` when it returned. A process that the agent launched stays in the `.background`.
public enum ScenePhase: Comparable, Hashable, Sendable {
    case background
    case inactive
    case active
}

/// What a scene can read of its surroundings.
@MainActor
public struct EnvironmentValues {
    /// Where the app stands: in a launch always in the background.
    public internal(set) var scenePhase = ScenePhase.background

    /// What the app's scenes were given, by type.
    var objects: [ObjectIdentifier: AnyObject] = [:]

    static var current = EnvironmentValues()
}

/// Reads a value of the surroundings: `@Environment(\.scenePhase) private var scenePhase`; or a model that a scene was given with
/// ``Scene/environment(_:)``: `@Environment(Model.self) private var model`.
@MainActor
@propertyWrapper
public struct Environment<Value> {
    private let read: @MainActor () -> Value

    /// - Parameter keyPath: what to read, such as `\.scenePhase`.
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { read = { EnvironmentValues.current[keyPath: keyPath] } }

    /// - Parameter objectType: the model's. Reading it traps where no scene was given one.
    public init(_ objectType: Value.Type) where Value: AnyObject & Observable {
        read = {
            guard let object = EnvironmentValues.current.object(objectType) else {
                preconditionFailure("no scene was given a \(objectType) by environment(_:)")
            }
            return object
        }
    }

    /// - Parameter objectType: the model's; `nil` where no scene was given one.
    public init<Model: AnyObject & Observable>(_ objectType: Model.Type) where Value == Model? {
        read = { EnvironmentValues.current.object(objectType) }
    }

    /// As it is at this moment.
    public var wrappedValue: Value { read() }
}

extension Scene {
    /// Calls `action` with the old and the new value when `value` changed.
    ///
    /// The scene's body is evaluated anew after each change of its surroundings, and its values compared.
    public func onChange<V: Equatable>(
        of value: V, initial: Bool = false, _ action: @escaping (_ oldValue: V, _ newValue: V) -> Void
    ) -> some Scene {
        ObservingScene(content: self, observer: ChangeObserver(value, initial: initial, action))
    }

    /// The same for an action that reads what it needs itself.
    public func onChange<V: Equatable>(of value: V, initial: Bool = false, _ action: @escaping () -> Void) -> some Scene {
        ObservingScene(content: self, observer: ChangeObserver(value, initial: initial) { _, _ in action() })
    }

    /// The form of iOS 14, deprecated by Apple in iOS 17.
    public func onChange<V: Equatable>(of value: V, perform action: @escaping (_ newValue: V) -> Void) -> some Scene {
        ObservingScene(content: self, observer: ChangeObserver(value, initial: false) { _, new in action(new) })
    }
}

/// One value that a scene watches, as one evaluation of its body found it.
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

    /// - Parameter old: the same place in the evaluation before.
    func act(ifDifferentFrom old: ChangeObserver) {
        if differs(old.value) { perform(old.value) }
    }
}

/// A scene with one more watched value.
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

/// Follows an app through its phases and tells its scenes what changed.
@MainActor
final class SceneObservation {
    private let evaluate: () -> [ChangeObserver]
    private var observers: [ChangeObserver]

    /// - Parameter evaluate: the observers of the app's body, evaluated anew.
    init(_ evaluate: @escaping () -> [ChangeObserver]) {
        self.evaluate = evaluate
        observers = evaluate()
        for observer in observers where observer.isInitial { observer.act() }
    }

    func enter(_ phase: ScenePhase) {
        guard EnvironmentValues.current.scenePhase != phase else { return }
        EnvironmentValues.current.scenePhase = phase
        let now = evaluate()
        // A body whose shape changed is followed from here on; there is nothing to compare it with.
        if now.count == observers.count {
            for (old, new) in zip(observers, now) { new.act(ifDifferentFrom: old) }
        }
        observers = now
    }
}
