import Foundation
@_exported import Observation

/// What an app keeps itself: `@State private var model = Model()`.
///
/// Differs from Apple: it is there as long as its app, which is made once in every process; nothing is drawn anew when it changes. A process
/// that ends takes it along: what the next launch needs stands in a file, or in ``AppStorage``.
@propertyWrapper
public struct State<Value> {
    private final class Box {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private let box: Box

    /// - Parameter wrappedValue: the first value.
    public init(wrappedValue: Value) { box = Box(wrappedValue) }

    /// - Parameter initialValue: the first value.
    public init(initialValue: Value) { box = Box(initialValue) }

    /// As it is now, for all copies of what has it.
    public var wrappedValue: Value {
        get { box.value }
        nonmutating set { box.value = newValue }
    }
}

/// A value of the app's `UserDefaults`: `@AppStorage("started") private var hasStarted = false`.
///
/// What is set is there for the next launch, see `BGTask.setTaskCompleted(success:)`. Differs from Apple: nothing is drawn anew when it changes.
@propertyWrapper
public struct AppStorage<Value> {
    private let load: () -> Value
    private let store: (Value) -> Void

    private init(_ load: @escaping () -> Value, _ store: @escaping (Value) -> Void) { (self.load, self.store) = (load, store) }

    /// As it is now.
    public var wrappedValue: Value {
        get { load() }
        nonmutating set { store(newValue) }
    }

    private init(plain wrappedValue: Value, _ key: String, _ store: UserDefaults?) {
        let defaults = store ?? .standard
        self.init({ defaults.object(forKey: key) as? Value ?? wrappedValue }, { defaults.set($0, forKey: key) })
    }

    /// - Parameters:
    ///   - wrappedValue: what it is where nothing was set.
    ///   - key: its name.
    ///   - store: where it stands; `nil`: in the standard defaults.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Bool {
        self.init(plain: wrappedValue, key, store)
    }

    /// The same for a number.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Int {
        self.init(plain: wrappedValue, key, store)
    }

    /// The same for a number with a fraction.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Double {
        self.init(plain: wrappedValue, key, store)
    }

    /// The same for a text.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == String {
        self.init(plain: wrappedValue, key, store)
    }

    /// The same for bytes.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Data {
        self.init(plain: wrappedValue, key, store)
    }

    /// The same for an address.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == URL {
        let defaults = store ?? .standard
        self.init({ defaults.url(forKey: key) ?? wrappedValue }, { defaults.set($0, forKey: key) })
    }

    /// The same for an enumeration of numbers.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value: RawRepresentable<Int> {
        self.init(raw: wrappedValue, key, store)
    }

    /// The same for an enumeration of texts.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value: RawRepresentable<String> {
        self.init(raw: wrappedValue, key, store)
    }

    private init(raw wrappedValue: Value, _ key: String, _ store: UserDefaults?) where Value: RawRepresentable {
        let defaults = store ?? .standard
        self.init(
            { (defaults.object(forKey: key) as? Value.RawValue).flatMap(Value.init(rawValue:)) ?? wrappedValue },
            { defaults.set($0.rawValue, forKey: key) })
    }
}

extension EnvironmentValues {
    func object<Model: AnyObject>(_ type: Model.Type) -> Model? { objects[ObjectIdentifier(type)] as? Model }
}

extension Scene {
    /// Gives a model to all that reads ``Environment``.
    ///
    /// Differs from Apple: to the whole app, also to what stands beside this scene.
    ///
    /// - Parameter object: the model; `nil`: there is none.
    public func environment<Model: AnyObject & Observable>(_ object: Model?) -> some Scene {
        ModelScene(content: self) { EnvironmentValues.current.objects[ObjectIdentifier(Model.self)] = object }
    }
}

extension View {
    /// Compiled, and without effect: no view is ever built.
    ///
    /// - Parameter object: kept nowhere.
    public func environment<Model: AnyObject & Observable>(_ object: Model?) -> some View { self }
}

/// A scene with a model for those within.
struct ModelScene<Content: Scene>: Scene, SceneParts {
    let content: Content
    let give: @MainActor () -> Void

    var body: Never { preconditionFailure("a primitive scene has no body") }

    var parts: ScenePartsList {
        // Before those within are looked at: they read it.
        give()
        return content.collectParts()
    }
}
