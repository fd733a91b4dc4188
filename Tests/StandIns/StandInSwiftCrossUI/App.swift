// SwiftCrossUI as far as a bridge to it goes: names and shape of its protocols, as of its snapshot of 2026-02. A window is a line in a file.
// Not under the name of the library: a package must not have a module of that name when an author's app has the library itself.

@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// Shows the windows until a person closes them; here at once.
    public static func main() { _ = Body.Node(from: Self().body) }
}

@MainActor
public protocol View {
    associatedtype Content: View
    @ViewBuilder var body: Content { get }
}

extension Never: View { public var body: Never { fatalError("Never has no body") } }

@MainActor
@resultBuilder
public enum ViewBuilder {
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
}

public struct Text: View {
    public var string: String

    public init(_ string: String) { self.string = string }

    public var body: Never { fatalError("a view of the library's own") }
}

@MainActor
public struct EnvironmentValues {
    public var colorScheme = "light"
}

@MainActor
@propertyWrapper
public struct Environment<Value> {
    private let keyPath: KeyPath<EnvironmentValues, Value>

    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { self.keyPath = keyPath }

    public var wrappedValue: Value { EnvironmentValues()[keyPath: keyPath] }
}
