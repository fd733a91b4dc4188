// The part of SwiftCrossUI that a bridge needs: names and forms of its protocols, as of the snapshot of 2026-02. A window is a
// line in a file. The module does not have the name of the library. A package must not have a module of that name if an author's
// app uses the library.

@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// Shows the windows and returns. The library returns when the user closes the windows.
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
