import Foundation
@_exported import Observation

/// A property of the app whose value is kept in memory: `@State private var model = Model()`.
///
/// Differs from Apple: the app is created once in every process, and the value is kept until the process ends. A change does not
/// redraw anything. Store values for the next launch in a file or in ``AppStorage``.
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

    /// The current value. All copies of the enclosing struct share one current value.
    public var wrappedValue: Value {
        get { box.value }
        nonmutating set { box.value = newValue }
    }
}

/// A value that is stored in the app's `UserDefaults`: `@AppStorage("started") private var hasStarted = false`.
///
/// The next launch can read the value, because the value is written to the disk (see `BGTask.setTaskCompleted(success:)`).
/// Differs from Apple: a change does not redraw anything.
@propertyWrapper
public struct AppStorage<Value> {
    private let load: () -> Value
    private let store: (Value) -> Void

    private init(_ load: @escaping () -> Value, _ store: @escaping (Value) -> Void) { (self.load, self.store) = (load, store) }

    /// The current value.
    public var wrappedValue: Value {
        get { load() }
        nonmutating set { store(newValue) }
    }

    private init(plain wrappedValue: Value, _ key: String, _ store: UserDefaults?) {
        let defaults = store ?? .standard
        self.init({ defaults.object(forKey: key) as? Value ?? wrappedValue }, { defaults.set($0, forKey: key) })
    }

    /// - Parameters:
    ///   - wrappedValue: the default value.
    ///   - key: the key in the defaults.
    ///   - store: the defaults to use, or `nil` for the standard defaults.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Bool {
        self.init(plain: wrappedValue, key, store)
    }

    /// Creates a stored integer.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Int {
        self.init(plain: wrappedValue, key, store)
    }

    /// Creates a stored floating-point number.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Double {
        self.init(plain: wrappedValue, key, store)
    }

    /// Creates a stored text.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == String {
        self.init(plain: wrappedValue, key, store)
    }

    /// Creates stored bytes.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == Data {
        self.init(plain: wrappedValue, key, store)
    }

    /// Creates a stored URL.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == URL {
        let defaults = store ?? .standard
        self.init({ defaults.url(forKey: key) ?? wrappedValue }, { defaults.set($0, forKey: key) })
    }

    /// Creates a stored enumeration with integer values.
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value: RawRepresentable<Int> {
        self.init(raw: wrappedValue, key, store)
    }

    /// Creates a stored enumeration with text values.
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
    /// Provides a model to all ``Environment`` properties.
    ///
    /// Differs from Apple: the model is available in the complete app, also outside this scene.
    ///
    /// - Parameter object: the model, or `nil` to remove it.
    public func environment<Model: AnyObject & Observable>(_ object: Model?) -> some Scene {
        ModelScene(content: self) { EnvironmentValues.current.objects[ObjectIdentifier(Model.self)] = object }
    }
}

extension View {
    /// Returns the view unchanged, because views are never drawn. The declaration exists only so that code for iOS compiles.
    ///
    /// - Parameter object: not used.
    public func environment<Model: AnyObject & Observable>(_ object: Model?) -> some View { self }
}

/// A scene that passes a model to the environment of its content.
struct ModelScene<Content: Scene>: Scene, SceneParts {
    let content: Content
    let give: @MainActor () -> Void

    var body: Never { preconditionFailure("a primitive scene has no body") }

    var parts: ScenePartsList {
        // The model is set first, because the content reads it.
        give()
        return content.collectParts()
    }
}
