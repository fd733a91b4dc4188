// The part of SwiftCrossUI that a bridge needs: its protocols, with their names and forms in the snapshot of 2026-02. A window is
// represented by a line in a file. The module has another name than the library. If an author's app uses the library, no other
// package may have a module with the library's name.

@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// Shows the windows and returns. The real library returns when the user closes the windows.
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
