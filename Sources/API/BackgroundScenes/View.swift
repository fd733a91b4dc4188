/// The content of a window. This protocol is declared only so that the scenes of an app compile. Views are never drawn on Linux.
@MainActor
public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {}

/// Combines views into one view.
@MainActor
@resultBuilder
public enum ViewBuilder {
    /// Returns an empty view.
    public static func buildBlock() -> EmptyView { EmptyView() }
    /// Returns the view.
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
}

/// A view without content.
public struct EmptyView: View {
    /// Creates an empty view.
    public init() {}

    public var body: Never { preconditionFailure("a primitive view has no body") }
}

/// A line of text.
public struct Text: View {
    /// - Parameter text: not used, because nothing is drawn.
    public init(_ text: String) {}

    public var body: Never { preconditionFailure("a primitive view has no body") }
}
